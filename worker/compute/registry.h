#ifndef LOCKSTEP_WORKER_COMPUTE_REGISTRY_H_
#define LOCKSTEP_WORKER_COMPUTE_REGISTRY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::worker {

struct BackendOptions {
  // CPU: threads of each large operation, in [0, 1024]; 0 lets OpenBLAS decide,
  // which takes one per core. Applies to the whole process.
  int threads = 0;
  // GPU: its number among those that this process may see.
  int gpu = 0;
};

// Returns the backend called `name`: "cpu", "cuda", or "auto" for the fastest
// that works here.
//
//   kInvalidArgument     no such name, or threads out of range
//   kFailedPrecondition  the backend is not part of this build, or there is no
//                        device for it
//   others               a device is there, but fails
absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeBackend(
    const std::string& name, const BackendOptions& options);

// Returns how many GPUs this process may see, 0 without any that can be used.
int CountGpus();

// Returns the reason why "auto" chooses no GPU here; empty if it does. Opens
// the device to find out.
std::string WhyNoGpu();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_REGISTRY_H_
