#include "worker/models/layers/embedding_layer.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kTokens = 0;
constexpr size_t kPositions = 1;
// GPT-2's deviation of token embeddings.
constexpr Initializer kSmall = {Initializer::Kind::kNormal, 0, 0.02};

ConstTensor Ids(const ConstTensor& in) { return in.Reshaped({in.size()}); }

}  // namespace

EmbeddingLayer::EmbeddingLayer(const Options& options, ElementType type)
    : Layer(type, {{absl::StrCat(options.name, "/tokens"),
                    {options.tokens, options.width},
                    VariableType(type),
                    kSmall},
                   {absl::StrCat(options.name, "/positions"),
                    {options.positions, options.width},
                    VariableType(type),
                    kSmall}}) {}

// Adds positions as a bias of whole sequences: with sequences as rows of t *
// width elements, the bias is the first t rows of the table.
absl::StatusOr<Tensor> EmbeddingLayer::Forward(
    ComputeBackend& backend, const ConstTensor& in,
    absl::Span<const ConstTensor> variables) {
  in_ = in;
  const int64_t width = variables[kTokens].dim(1);
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor out, Out(backend, {in.size(), width}));
  LOCKSTEP_RETURN_IF_ERROR(backend.Embed(variables[kTokens], Ids(in), out));
  const int64_t row = in.dim(1) * width;
  LOCKSTEP_RETURN_IF_ERROR(backend.AddBias(
      variables[kPositions].Reshaped({row}), out.Reshaped({in.dim(0), row})));
  return out;
}

absl::Status EmbeddingLayer::Backward(const BackwardPass& pass,
                                      const Tensor& out_gradient,
                                      const Tensor*) {
  const Tensor& positions = pass.gradients[kPositions];
  const int64_t row = in_.dim(1) * out_gradient.dim(1);
  if (positions.size() > row) {  // zeros for positions that no sequence reached
    LOCKSTEP_RETURN_IF_ERROR(
        pass.backend.Combine(pass.variables[kPositions], 0, 0, positions));
  }
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.BiasGradient(
      out_gradient.Reshaped({in_.dim(0), row}), positions.Reshaped({row})));
  // The last variable first, as all layers report.
  pass.on_gradient(kPositions);
  LOCKSTEP_RETURN_IF_ERROR(pass.backend.EmbedGradient(Ids(in_), out_gradient,
                                                      pass.gradients[kTokens]));
  pass.on_gradient(kTokens);
  return absl::OkStatus();
}

}  // namespace lockstep::worker
