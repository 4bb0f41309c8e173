#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_CUBLAS_LIBRARY_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_CUBLAS_LIBRARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

// cuBLAS is loaded when a device is opened, not when a program starts: a
// program built with this backend also runs on machines without cuBLAS. The
// functions of <cublas_v2.h> that this backend calls are defined here and
// forward to the library; without it they fail with
// CUBLAS_STATUS_NOT_INITIALIZED.
namespace lockstep::worker::cuda {

// Loads the library on the first call; it is never unloaded.
//
//   kFailedPrecondition  the library is missing; the message has the places
//                        tried
//
// Threads: may be called from any thread.
absl::Status LoadCublas();

// Loads the first of `names` that is there, as dlopen() finds it. Errors as
// LoadCublas().
absl::StatusOr<void*> OpenFirst(absl::Span<const std::string> names);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_CUBLAS_LIBRARY_H_
