#include "worker/models/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

absl::Status CheckTensor(const char* what, const VariableSpec& spec,
                         ElementType type, const ConstTensor& tensor) {
  const Shape shape(spec.shape.begin(), spec.shape.end());
  if (tensor.type() != type || tensor.shape() != shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " of ", spec.name, " must be ", ElementTypeName(type), " ",
        ShapeText(shape), ", got ", ElementTypeName(tensor.type()), " ",
        ShapeText(tensor.shape())));
  }
  if (tensor.raw() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " of ", spec.name, " has no memory"));
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const char* what, absl::Span<const int32_t> values,
                          int64_t classes) {
  for (int32_t value : values) {
    if (value >= 0 && value < classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, " of the batch must be in [0, ", classes, "), got ", value));
  }
  return absl::OkStatus();
}

}  // namespace

Model::Model(const ModelInput& input, ElementType type,
             std::vector<VariableSpec> variables)
    : input_(input), type_(type), variables_(std::move(variables)) {}

absl::StatusOr<double> Model::Gradients(ComputeBackend& backend,
                                        const BatchView& batch,
                                        absl::Span<const ConstTensor> variables,
                                        absl::Span<const Tensor> gradients,
                                        const PassHooks& hooks) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the gradient", gradients));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckBatch(batch));

  context_ = {.training = true, .key = batch.key, .length = in.dim(1)};
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                            Forward(backend, in, variables, hooks));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor logits_gradient,
      logits_gradient_.Reserve(backend, type_, logits.shape()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const double loss,
      backend.SoftmaxCrossEntropy(logits, batch.labels, logits_gradient));
  LOCKSTEP_RETURN_IF_ERROR(
      Backward(backend, variables, logits_gradient, gradients, hooks));
  return loss;
}

absl::StatusOr<Evaluation> Model::Evaluate(
    ComputeBackend& backend, const BatchView& batch,
    absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckBatch(batch));

  context_ = {.training = false, .length = in.dim(1)};
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                            Forward(backend, in, variables, {}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor unused,
      logits_gradient_.Reserve(backend, type_, logits.shape()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const double loss,
      backend.SoftmaxCrossEntropy(logits, batch.labels, unused));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t correct,
                            backend.CountCorrect(logits, batch.labels));
  const int64_t examples = logits.dim(0);
  return Evaluation{loss * static_cast<double>(examples), correct, examples};
}

absl::StatusOr<Tensor> Model::Logits(ComputeBackend& backend,
                                     const BatchView& batch,
                                     absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckBatch(batch));
  context_ = {.training = false, .length = in.dim(1)};
  return Forward(backend, in, variables, {});
}

absl::StatusOr<ConstTensor> Model::CheckImages(const BatchView& batch) const {
  const ConstTensor& images = batch.images;
  const int64_t n = images.rank() == 0 ? 0 : images.dim(0);
  const Shape full = {n, input_.height, input_.width, input_.channels};
  const Shape flat = {n, input_.elements()};
  if (images.type() != type_ || n < 0 ||
      (images.shape() != full && images.shape() != flat)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "images of the batch must be ", ElementTypeName(type_), " [n,",
        input_.height, ",", input_.width, ",", input_.channels, "] or [n,",
        input_.elements(), "], got ", ElementTypeName(images.type()), " ",
        ShapeText(images.shape())));
  }
  return images.Reshaped(full);
}

absl::StatusOr<ConstTensor> Model::CheckTokens(const BatchView& batch) const {
  const ConstTensor& tokens = batch.tokens;
  if (tokens.type() != ElementType::kInt32 || tokens.rank() != 2 ||
      tokens.dim(0) < 0 || tokens.dim(1) < 1 || tokens.dim(1) > input_.tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens of the batch must be int32 [n,t] with t in [1, ",
                     input_.tokens, "], got ", ElementTypeName(tokens.type()),
                     " ", ShapeText(tokens.shape())));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckClasses(
      "tokens", absl::MakeSpan(tokens.data<int32_t>(), tokens.size()),
      input_.classes));
  return tokens;
}

absl::StatusOr<ConstTensor> Model::CheckBatch(const BatchView& batch) const {
  LOCKSTEP_ASSIGN_OR_RETURN(ConstTensor in, input_.tokens > 0
                                                ? CheckTokens(batch)
                                                : CheckImages(batch));
  const int64_t labels = input_.tokens > 0 ? in.size() : in.dim(0);
  if (batch.labels.size() != static_cast<size_t>(labels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch must have as many labels as ",
                     input_.tokens > 0 ? "tokens" : "images", ", got ",
                     batch.labels.size(), " and ", labels));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckClasses("labels", batch.labels, input_.classes));
  return in;
}

template <typename AnyTensor>
absl::Status Model::CheckTensors(const char* what,
                                 absl::Span<const AnyTensor> tensors) const {
  if (tensors.size() != variables_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " of ", variables_.size(),
                     " variables are needed, got ", tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckTensor(what, variables_[i], type_, tensors[i]));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
