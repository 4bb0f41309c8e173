#ifndef LOCKSTEP_WORKER_MODELS_MODEL_H_
#define LOCKSTEP_WORKER_MODELS_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/variable_spec.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/tensor/tensor.h"
#include "worker/loop/gradient_pass.h"
#include "worker/models/layers/pass_context.h"

namespace lockstep::worker {

// The shape of the examples. Units: height and width in pixels, channels in
// values per pixel, tokens in bytes of text.
struct ModelInput {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t classes = 0;  // labels are in [0, classes); text: 256, a byte
  int64_t tokens = 0;   // most positions of a sequence of text; 0: pictures

  int64_t elements() const { return height * width * channels; }
};

// The examples of one pass. n is their number and may be 0.
//
// Borrows: the memory of all tensors, which the backend must be able to read.
//          Labels and tokens must come from StageIndices(), with a bound of
//          `classes`.
struct BatchView {
  ConstTensor images;  // [n,h,w,c] or [n,h*w*c], in [0, 1]
  ConstTensor labels;  // int32 [n]
  // Text instead of images: int32 [n,t]. The labels are then [n*t]: the byte
  // that follows each token.
  ConstTensor tokens = {};
  uint64_t key = 0;  // of the random numbers of this pass
};

// Sums over the examples of a batch (for text, over its bytes), so that the
// scores of several batches can be added.
struct BatchScore {
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t examples = 0;
};

// Model computes one logit per class for each example, and the gradients of its
// variables. It keeps the memory of a pass for the next: a pass over a batch no
// larger than those before allocates no tensor.
//
// The caller owns the variables. `variables` and `gradients` must be in the
// order, and of the shapes, of variables().
//
// Threads: not thread-safe.
// Errors:  kInvalidArgument for tensors or batches of another form than the
//          model's, before anything is written. A failure of the backend is
//          passed on; the gradients then mean nothing.
class Model {
 public:
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Names, shapes and initial values; the same for every worker of a job.
  const std::vector<VariableSpec>& variables() const { return variables_; }

  // The first half of a training pass: computes the logits of the batch, and
  // keeps what Finish() needs. Calls pass.NeedValues() before each layer, whose
  // variables are read from then on. Queues operations and does not wait for
  // them.
  //
  //   kAborted  as GradientPass
  absl::Status Begin(ComputeBackend& backend, const BatchView& batch,
                     absl::Span<const ConstTensor> variables,
                     GradientPass& pass);

  // The second half, at most once after a Begin() that succeeded, with the same
  // backend and variables; the batch must still be there. Writes the mean loss
  // over the batch into `loss`, float64 [1] of the backend's memory, and all
  // gradients of that loss. Calls pass.CheckWanted() before each layer, the
  // last one first, and pass.GradientReady() once for each variable. Queues
  // operations and does not wait for them.
  //
  //   kAborted  as GradientPass; gradients that are not ready mean nothing
  absl::Status Finish(ComputeBackend& backend,
                      absl::Span<const ConstTensor> variables,
                      absl::Span<const Tensor> gradients, const Tensor& loss,
                      GradientPass& pass);

  // Begin() and Finish(). The gradients are checked before anything is
  // computed. Without `pass` all values must be in memory, and the pass is
  // wanted to its end.
  absl::Status Gradients(ComputeBackend& backend, const BatchView& batch,
                         absl::Span<const ConstTensor> variables,
                         absl::Span<const Tensor> gradients, const Tensor& loss,
                         GradientPass& pass);
  absl::Status Gradients(ComputeBackend& backend, const BatchView& batch,
                         absl::Span<const ConstTensor> variables,
                         absl::Span<const Tensor> gradients,
                         const Tensor& loss) {
    GradientPass pass;
    return Gradients(backend, batch, variables, gradients, loss, pass);
  }

  // True if Gradients() calls other operations for another key of the batch, so
  // that a recording of one pass must not be replayed for the next.
  virtual bool random() const { return true; }

  // Scores the batch by its labels, without dropout and with moving statistics.
  // Waits for the device.
  absl::StatusOr<BatchScore> Evaluate(ComputeBackend& backend,
                                      const BatchView& batch,
                                      absl::Span<const ConstTensor> variables);

  // Returns the logits, [n,classes] or [n*t,classes], a tensor of the backend
  // that is valid until the next call. The labels of the batch are not used.
  absl::StatusOr<Tensor> Logits(ComputeBackend& backend, const BatchView& batch,
                                absl::Span<const ConstTensor> variables);

 protected:
  Model(const ModelInput& input, ElementType type,
        std::vector<VariableSpec> variables);

  // Returns the logits [n,classes] of pictures `in` [n,h,w,c], or [n*t,classes]
  // of tokens `in` [n,t], and keeps what Backward() needs. Must call
  // pass.NeedValues() before each layer. The arguments have been checked.
  virtual absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& in,
      absl::Span<const ConstTensor> variables, GradientPass& pass) = 0;

  // Writes the gradients of the pass of the last Forward() from
  // `logits_gradient`, shaped as the logits. Must call `pass` as Finish() says.
  virtual absl::Status Backward(ComputeBackend& backend,
                                absl::Span<const ConstTensor> variables,
                                const Tensor& logits_gradient,
                                absl::Span<const Tensor> gradients,
                                GradientPass& pass) = 0;

  // The context of the current pass, for Forward().
  const PassContext& context() const { return context_; }

 private:
  absl::Status CheckLabels(const BatchView& batch, const ConstTensor& in) const;
  absl::StatusOr<ConstTensor> CheckInput(const BatchView& batch) const;
  absl::StatusOr<ConstTensor> CheckImages(const BatchView& batch) const;
  absl::StatusOr<ConstTensor> CheckTokens(const BatchView& batch) const;
  template <typename AnyTensor>
  absl::Status CheckTensors(const char* what,
                            absl::Span<const AnyTensor> tensors) const;

  const ModelInput input_;
  const ElementType type_;
  const std::vector<VariableSpec> variables_;
  PassContext context_;
  // Valid between Begin() and Finish(): views of the caller's and a layer's
  // memory.
  Tensor logits_;
  ConstTensor labels_;
  Scratch logits_gradient_;
  Scratch score_;  // the two numbers of Evaluate()
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_MODEL_H_
