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
#include "worker/loop/pass_hooks.h"
#include "worker/models/layers/pass_context.h"

namespace lockstep {

// What the examples look like. Units: pixels; values per pixel; labels.
struct ModelInput {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t classes = 0;  // of text: the values of a byte
  int64_t tokens = 0;   // most positions of a sequence of text; 0: pictures

  int64_t elements() const { return height * width * channels; }
};

// The examples of one pass; none at all is legal.
//
// Borrows: everything. All lies where the backend can read; labels and tokens
// come from StageIndices(), and are known to be in [0, classes).
struct BatchView {
  ConstTensor images;  // [n,h,w,c] or [n,h*w*c], in [0, 1]
  ConstTensor labels;  // int32 [n]
  // Text instead of images: int32 [n,t], with labels [n * t]: the bytes that
  // follow.
  ConstTensor tokens = {};
  uint64_t key = 0;  // of the random numbers of this pass
};

// Sums over the examples of a batch (over the bytes of text), so that the sums
// of several batches can be added.
struct BatchScore {
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t examples = 0;
};

// Model is a function from images to one logit per class, with its gradients.
// It keeps the memory of a pass for the next: once warm, a pass over a batch
// no larger than those before allocates no tensor.
//
// The variables live elsewhere. `variables` and `gradients` are in the order,
// and of the shapes, of variables().
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

  // Writes all gradients of the mean loss over the batch, and that loss into
  // `loss`, float64 [1] of the backend's memory. Waits for nothing.
  //
  //   kAborted  the hooks said so between two layers; the gradients that were
  //             not reported mean nothing
  absl::Status Gradients(ComputeBackend& backend, const BatchView& batch,
                         absl::Span<const ConstTensor> variables,
                         absl::Span<const Tensor> gradients, const Tensor& loss,
                         const PassHooks& hooks = {});

  // Whether Gradients() calls other operations for another key of the batch,
  // so that no recording of them is good for the next pass. True unless a model
  // knows better.
  virtual bool random() const { return true; }

  absl::StatusOr<BatchScore> Evaluate(ComputeBackend& backend,
                                      const BatchView& batch,
                                      absl::Span<const ConstTensor> variables);

  // What the model says of the batch, whose labels do not matter: a tensor of
  // the backend, good until the next call.
  absl::StatusOr<Tensor> Logits(ComputeBackend& backend, const BatchView& batch,
                                absl::Span<const ConstTensor> variables);

 protected:
  Model(const ModelInput& input, ElementType type,
        std::vector<VariableSpec> variables);

  // Returns the logits [n,classes] of `images` [n,h,w,c], of text [n*t,classes]
  // of its tokens [n,t], and keeps what
  // Backward() needs. Asks the hooks before each layer. The arguments have been
  // checked.
  virtual absl::StatusOr<Tensor> Forward(
      ComputeBackend& backend, const ConstTensor& images,
      absl::Span<const ConstTensor> variables, const PassHooks& hooks) = 0;

  // Writes the gradients of the pass that Forward() has just made, and asks
  // and tells the hooks.
  virtual absl::Status Backward(ComputeBackend& backend,
                                absl::Span<const ConstTensor> variables,
                                const Tensor& logits_gradient,
                                absl::Span<const Tensor> gradients,
                                const PassHooks& hooks) = 0;

  // Of the pass that Forward() is called for.
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
  Scratch logits_gradient_;
  Scratch score_;  // what Evaluate() finds, two numbers
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_MODELS_MODEL_H_
