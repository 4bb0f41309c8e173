#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_RECORDING_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_RECORDING_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/replay/recording.h"

// Recordings as CUDA graphs: a stream is captured, and the work queued on it is
// launched as one graph. Calls of other threads are not affected.
//
// Errors: those of ToStatus().
namespace lockstep::worker::cuda {

// Starts to capture the work queued on `stream`. `device` is its name, for
// messages.
absl::Status BeginCapture(cudaStream_t stream, const std::string& device);

// Ends the capture, also after a failure in it. The recording is replayed on
// `stream` and borrows `device`.
absl::StatusOr<std::unique_ptr<Recording>> EndCapture(
    cudaStream_t stream, const std::string& device);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_RECORDING_H_
