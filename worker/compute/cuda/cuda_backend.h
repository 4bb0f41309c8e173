#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::worker {

// Returns the backend of one GPU, by its number among those that this process
// may see: KernelBackend with the kernels of this folder and cuBLAS.
//
//   kFailedPrecondition  there is no device of this number that can be used
//   others               errors of CUDA while the device was set up
absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeCudaBackend(int index = 0);

// Returns the number of GPUs that this process may see, 0 if none can be used.
int CountCudaDevices();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUDA_BACKEND_H_
