#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"

// CUDA's errors as a Status: "MatMul: cublasGemmStridedBatchedEx on device 0
// (NVIDIA H100): CUBLAS_STATUS_...".
//
//   kUnavailable        the device is lost to this process, which has to be
//                       started again
//   kResourceExhausted  memory of the device is short
//   kInternal           anything else
namespace lockstep::worker::cuda {

// Where a call was made: its name, the operation that needed it, and the
// device.
struct CallSite {
  const char* call;
  const char* operation;
  const std::string& device;
};

// CUDA keeps the error of a call for the thread, and the next launch would
// return it. Both functions take it.
absl::Status ToStatus(cudaError_t error, const CallSite& site);
absl::Status ToStatus(cublasStatus_t error, const CallSite& site);

// Takes an error that has no consequence.
void Ignore(cudaError_t error);

// kResourceExhausted with the bytes asked for, free and in all. `total` is 0
// where the device did not say how many there are.
absl::Status OutOfMemory(size_t asked, size_t free, size_t total,
                         const std::string& device);

// True if no further call of this process on the device can succeed.
bool IsLost(cudaError_t error);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_
