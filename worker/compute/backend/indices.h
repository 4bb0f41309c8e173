#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_INDICES_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_INDICES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::worker {

// Copies labels or ids to memory that operations can read, and checks each of
// them while that is cheap, in ordinary memory: operations rely on the result's
// bound() and never stop a device to read the numbers.
//
// `host` must be int32 in ordinary memory, of any shape. The result has that
// shape; it is `host` itself if the backend uses ordinary memory, else a copy
// in `memory`, valid until its next Reserve(). Messages call the numbers
// `name`.
//
//   kInvalidArgument    no int32, or a number outside [0, bound); nothing has
//                       been copied
//   kResourceExhausted  the device has too little memory
absl::StatusOr<ConstTensor> StageIndices(const char* name,
                                         const ConstTensor& host, int64_t bound,
                                         ComputeBackend& backend,
                                         Scratch& memory);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_INDICES_H_
