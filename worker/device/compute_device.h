// What a process computes on, as its flags say.

#ifndef LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"

namespace lockstep::worker {

// MakeBackend(), and logs the device that it found. Where "auto" finds no GPU
// the log says why: at level debug on a machine that has none, at level info
// where `devices`, which is /dev but for tests, shows one. `threads` as in
// BackendOptions. Errors: as MakeBackend().
absl::StatusOr<std::unique_ptr<ComputeBackend>> OpenComputeDevice(
    const std::string& name, int threads, const std::string& devices = "/dev");

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_COMPUTE_DEVICE_H_
