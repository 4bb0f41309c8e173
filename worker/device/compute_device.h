// Opens the backend that the flags of a process name.

#ifndef LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::worker {

// As MakeBackend(), and logs the device. If "auto" finds no GPU, the log has
// the reason: at level info if `devices` (/dev except in tests) shows one, else
// at level debug. `threads` as in BackendOptions. Errors: as MakeBackend().
absl::StatusOr<std::unique_ptr<ComputeBackend>> OpenComputeDevice(
    const std::string& name, int threads, const std::string& devices = "/dev");

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_
