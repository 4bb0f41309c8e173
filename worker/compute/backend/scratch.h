#ifndef LOCKSTEP_WORKER_COMPUTE_BACKEND_SCRATCH_H_
#define LOCKSTEP_WORKER_COMPUTE_BACKEND_SCRATCH_H_

#include "absl/status/statusor.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/tensor/buffer.h"
#include "worker/compute/tensor/tensor.h"

namespace lockstep::worker {

// Scratch is memory that is kept between passes, so that a pass that is no
// larger than those before it allocates nothing. It only grows.
//
// Threads: not thread-safe.
// Owns:    the memory, to which the tensor of the last Reserve() refers.
class Scratch {
 public:
  // Returns a tensor of undefined contents; the one returned before must not be
  // used any more. If `backend` is another one than before, allocates anew.
  //
  //   kInvalidArgument    a negative dimension, or too many elements to count
  //   kResourceExhausted  not enough memory; the last tensor is still good
  absl::StatusOr<Tensor> Reserve(ComputeBackend& backend, ElementType type,
                                 Shape shape);

 private:
  const ComputeBackend* owner_ = nullptr;  // only compared
  Buffer buffer_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_BACKEND_SCRATCH_H_
