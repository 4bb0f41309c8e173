#ifndef LOCKSTEP_WORKER_DEVICE_DEVICE_VARIABLES_H_
#define LOCKSTEP_WORKER_DEVICE_DEVICE_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/data/batch.h"
#include "worker/data/examples.h"
#include "worker/device/float_copies.h"
#include "worker/memory/parameter_memory.h"
#include "worker/models/model.h"

namespace lockstep {

// What the model has to know of the examples.
ModelInput InputOf(const Examples& examples);

// DeviceVariables are a model's variables and gradients where the backend
// computes: the worker's memory itself on a CPU, else copies of it. The
// worker's memory is pinned, so that copies run beside the operations, and a
// gradient is pushed from where its copy arrived. Where that memory has float16
// or bfloat16, FloatCopies are between.
//
// Borrows: memory and backend.
class DeviceVariables {
 public:
  using Report = std::function<void(size_t variable)>;

  // `variables` are as the model computes with them.
  DeviceVariables(std::vector<VariableSpec> variables,
                  const ParameterMemory& memory, ComputeBackend& backend);
  ~DeviceVariables();
  DeviceVariables(const DeviceVariables&) = delete;
  DeviceVariables& operator=(const DeviceVariables&) = delete;

  // Valid once BeginPass() has succeeded.
  const std::vector<ConstTensor>& values() const { return values_; }
  const std::vector<Tensor>& gradients() const { return gradients_; }

  // From now on the worker's memory may have other values. Gets the device's
  // memory when that has not been done.
  //
  //   kResourceExhausted  the device, or this host for FloatCopies, has too
  //                       little memory
  absl::Status BeginPass();
  // The same, and begins to bring all values to the device, the first layers'
  // first.
  absl::Status StartUpload();
  // Lets the operations called from now on wait for these values alone. Begins
  // to bring those that are not on their way.
  absl::Status BeforeUse(size_t first, size_t count);
  // StartUpload(), and waits.
  absl::Status Upload();

  // The gradient is final: begins to bring it to the worker's memory.
  absl::Status StartDownload(size_t variable);
  // Reports those that have arrived, in the order of StartDownload(); all of
  // them, if `wait` is set.
  absl::Status Arrived(bool wait, const Report& report);

 private:
  absl::Status Prepare();
  absl::Status Bring(size_t variable);
  // Waits for what is under way.
  void Settle();

  const std::vector<VariableSpec> variables_;
  ComputeBackend& backend_;
  // Null: none are needed. Where they cannot be had, no pass begins.
  const absl::StatusOr<std::unique_ptr<FloatCopies>> made_floats_;
  FloatCopies* const floats_;
  // Of the worker's memory, or of the copies of it.
  const std::vector<ConstTensor> host_values_;
  const std::vector<Tensor> host_gradients_;
  const std::vector<absl::Span<std::byte>> memory_;  // what can be pinned
  bool prepared_ = false;
  std::vector<Buffer> buffers_;
  std::vector<Buffer> pins_;
  std::vector<Tensor> own_values_;
  std::vector<ConstTensor> values_;
  std::vector<Tensor> gradients_;
  std::vector<bool> brought_;                   // of the pass; by variable
  std::vector<std::optional<CopyId>> uploads_;  // by variable
  std::deque<std::pair<size_t, CopyId>> downloads_;
};

// BatchStage brings examples of a batch where the backend computes.
class BatchStage {
 public:
  BatchStage(ComputeBackend& backend, const ModelInput& input)
      : backend_(backend), input_(input) {}

  // Examples [first, first + count) of the batch, which must outlive the view;
  // good until the next call. Views of equally many examples lie in the same
  // place where the backend does not use ordinary memory.
  //
  //   kInvalidArgument  a label or a token that is no class
  absl::StatusOr<BatchView> View(const Batch& batch, int64_t first,
                                 int64_t count);

 private:
  ComputeBackend& backend_;
  const ModelInput input_;
  Scratch images_;
  Scratch labels_;
  Scratch tokens_;
};

// Views of a model's variables or gradients in the worker's memory.
std::vector<ConstTensor> ValueViews(const std::vector<VariableSpec>& variables,
                                    const ParameterMemory& memory);
std::vector<Tensor> GradientViews(const std::vector<VariableSpec>& variables,
                                  const ParameterMemory& memory);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_VARIABLES_H_
