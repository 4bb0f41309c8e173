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

// The site of a call: its name, the operation that needed it, and the device.
struct CallSite {
  const char* call;
  const char* operation;
  const std::string& device;
};

// Converts the error of a call. Also clears it: CUDA keeps the last error for
// the thread, and the next launch would return it.
absl::Status ToStatus(cudaError_t error, const CallSite& site);
absl::Status ToStatus(cublasStatus_t error, const CallSite& site);

// Clears an error that has no consequence.
void Ignore(cudaError_t error);

// Returns kResourceExhausted with the bytes asked for, free, and in all.
// `total` is 0 if the device did not report it.
absl::Status OutOfMemory(size_t asked, size_t free, size_t total,
                         const std::string& device);

// True if no further call of this process on the device can succeed.
bool IsLost(cudaError_t error);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_
