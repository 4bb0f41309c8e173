#include "worker/models/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
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

absl::Status CheckClasses(const char* what, const ConstTensor& numbers,
                          int64_t classes) {
  const int64_t bound = numbers.bound();
  // Checked by the bound and not by the elements, which may be on a device.
  if (numbers.size() == 0 || (bound > 0 && bound <= classes)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " of the batch must be known to be in [0, ", classes,
                   "), got [0, ", bound, ")"));
}

// A view of element i of float64 tensor `numbers`.
Tensor Number(const Tensor& numbers, int64_t i) {
  return Tensor(numbers.type(), {1}, numbers.data<double>() + i);
}

}  // namespace

Model::Model(const ModelInput& input, ElementType type,
             std::vector<VariableSpec> variables)
    : input_(input), type_(type), variables_(std::move(variables)) {}

absl::Status Model::Begin(ComputeBackend& backend, const BatchView& batch,
                          absl::Span<const ConstTensor> variables,
                          GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckInput(batch));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabels(batch, in));

  // For pictures, `length` is the height, which no layer of theirs reads.
  context_ = {.training = true, .key = batch.key, .length = in.dim(1)};
  // Finish() needs the labels, whose memory must stay until then.
  labels_ = batch.labels;
  LOCKSTEP_ASSIGN_OR_RETURN(logits_, Forward(backend, in, variables, pass));
  return absl::OkStatus();
}

absl::Status Model::Finish(ComputeBackend& backend,
                           absl::Span<const ConstTensor> variables,
                           absl::Span<const Tensor> gradients,
                           const Tensor& loss, GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the gradient", gradients));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor logits_gradient,
      logits_gradient_.Reserve(backend, type_, logits_.shape()));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.SoftmaxCrossEntropy(logits_, labels_, loss, logits_gradient));
  return Backward(backend, variables, logits_gradient, gradients, pass);
}

absl::Status Model::Gradients(ComputeBackend& backend, const BatchView& batch,
                              absl::Span<const ConstTensor> variables,
                              absl::Span<const Tensor> gradients,
                              const Tensor& loss, GradientPass& pass) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the gradient", gradients));
  LOCKSTEP_RETURN_IF_ERROR(Begin(backend, batch, variables, pass));
  return Finish(backend, variables, gradients, loss, pass);
}

absl::StatusOr<BatchScore> Model::Evaluate(
    ComputeBackend& backend, const BatchView& batch,
    absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckInput(batch));
  LOCKSTEP_RETURN_IF_ERROR(CheckLabels(batch, in));

  context_ = {.training = false, .length = in.dim(1)};
  GradientPass no_gradients;
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                            Forward(backend, in, variables, no_gradients));
  // SoftmaxCrossEntropy() always writes a gradient.
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor unused,
      logits_gradient_.Reserve(backend, type_, logits.shape()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Tensor score, score_.Reserve(backend, ElementType::kFloat64, {2}));
  LOCKSTEP_RETURN_IF_ERROR(backend.SoftmaxCrossEntropy(
      logits, batch.labels, Number(score, 0), unused));
  LOCKSTEP_RETURN_IF_ERROR(
      backend.CountCorrect(logits, batch.labels, Number(score, 1)));
  // One copy for both numbers: each copy waits for the device.
  double found[2] = {};
  LOCKSTEP_RETURN_IF_ERROR(
      backend.Download(score, Tensor(score.type(), score.shape(), found)));
  const int64_t examples = logits.dim(0);
  // The device computed the mean.
  return BatchScore{found[0] * static_cast<double>(examples),
                    static_cast<int64_t>(found[1]), examples};
}

absl::StatusOr<Tensor> Model::Logits(ComputeBackend& backend,
                                     const BatchView& batch,
                                     absl::Span<const ConstTensor> variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckTensors("the values", variables));
  LOCKSTEP_ASSIGN_OR_RETURN(const ConstTensor in, CheckInput(batch));
  context_ = {.training = false, .length = in.dim(1)};
  GradientPass no_gradients;
  return Forward(backend, in, variables, no_gradients);
}

absl::StatusOr<ConstTensor> Model::CheckImages(const BatchView& batch) const {
  const ConstTensor& images = batch.images;
  // A tensor of rank 0 has no dim(0); its shape is refused below.
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
  LOCKSTEP_RETURN_IF_ERROR(CheckClasses("tokens", tokens, input_.classes));
  return tokens;
}

absl::StatusOr<ConstTensor> Model::CheckInput(const BatchView& batch) const {
  return input_.tokens > 0 ? CheckTokens(batch) : CheckImages(batch);
}

absl::Status Model::CheckLabels(const BatchView& batch,
                                const ConstTensor& in) const {
  // A text has one label for each position: the next token.
  const int64_t count = input_.tokens > 0 ? in.size() : in.dim(0);
  const ConstTensor& labels = batch.labels;
  if (labels.type() != ElementType::kInt32 || labels.shape() != Shape{count}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the batch must have as many labels as ",
        input_.tokens > 0 ? "tokens" : "images", ", int32 [", count, "], got ",
        ElementTypeName(labels.type()), " ", ShapeText(labels.shape())));
  }
  return CheckClasses("labels", labels, input_.classes);
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

}  // namespace lockstep::worker
