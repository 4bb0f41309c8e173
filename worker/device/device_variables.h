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

namespace lockstep::worker {

// Returns the shape of the examples as the input of a model.
ModelInput InputOf(const Examples& examples);

// DeviceVariables are a model's variables and gradients where the backend
// computes: the worker's memory itself on a CPU, else copies of it. The
// worker's memory is pinned, so that copies run beside the operations, and a
// gradient is pushed from the memory to which it was copied. If that memory has
// float16 or bfloat16, FloatCopies are in between.
//
// Threads: as the backend.
// Borrows: memory and backend.
// Errors:  those of the backend.
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

  // Must be called before each pass, as the worker's memory may have other
  // values. Waits for copies that the last pass left under way. Allocates the
  // device's memory the first time.
  //
  //   kResourceExhausted  the device, or this host for FloatCopies, has too
  //                       little memory
  absl::Status BeginPass();
  // BeginPass(), and starts to copy all values to the device, in the order of
  // the variables: the first layers need theirs first.
  absl::Status StartUpload();
  // Makes the operations called from now on wait for the values of variables
  // [first, first + count), and starts the copies that were not started. The
  // values must be in the worker's memory.
  absl::Status BeforeUse(size_t first, size_t count);
  // StartUpload(), and waits for all copies.
  absl::Status Upload();

  // Starts to copy a gradient to the worker's memory, after the operations
  // called so far.
  absl::Status StartDownload(size_t variable);
  // Calls `report` for each gradient that has arrived, in the order of
  // StartDownload(); if `wait` is set, for all that were started.
  absl::Status Arrived(bool wait, const Report& report);

 private:
  absl::Status Prepare();
  absl::Status Bring(size_t variable);
  // Waits for the copies under way.
  void Settle();

  const std::vector<VariableSpec> variables_;
  ComputeBackend& backend_;
  // Null: no copies are needed. The constructor cannot fail, so each pass
  // returns the error.
  const absl::StatusOr<std::unique_ptr<FloatCopies>> made_floats_;
  FloatCopies* const floats_;
  // Views of the worker's memory, or of floats_.
  const std::vector<ConstTensor> host_values_;
  const std::vector<Tensor> host_gradients_;
  const std::vector<absl::Span<std::byte>> memory_;  // ranges to be pinned
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

// BatchStage copies examples of a batch to the memory in which the backend
// computes.
//
// Threads: as the backend.
// Borrows: the backend.
// Errors:  those of the backend.
class BatchStage {
 public:
  BatchStage(ComputeBackend& backend, const ModelInput& input)
      : backend_(backend), input_(input) {}

  // Returns a view of examples [first, first + count) of the batch, which must
  // outlive the view. It is valid until the next call. Views of equally many
  // examples have the same address if the backend does not use ordinary memory,
  // as recorded passes require.
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

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_VARIABLES_H_
