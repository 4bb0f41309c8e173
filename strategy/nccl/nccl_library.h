#ifndef LOCKSTEP_STRATEGY_NCCL_NCCL_LIBRARY_H_
#define LOCKSTEP_STRATEGY_NCCL_NCCL_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/nccl/nccl_api.h"

// NCCL and the CUDA runtime are opened when a group is made, not when a program
// starts, so that one program runs with and without them.
namespace lockstep::strategy {

// Names for dlopen(), in the order in which they are tried.
struct LibraryNames {
  std::vector<std::string> cuda = {"libcudart.so.13", "libcudart.so.12",
                                   "libcudart.so.11.0", "libcudart.so"};
  std::vector<std::string> nccl = {"libnccl.so.2"};
};

// Open a library, which is never closed, and return its functions.
//
//   kFailedPrecondition  none of the libraries can be opened, or the one that
//                        opens lacks a function; names it and the fix
//
// Threads: safe to call from any thread.
absl::StatusOr<CudaFunctions> LoadCuda(const std::vector<std::string>& names);
absl::StatusOr<NcclFunctions> LoadNccl(const std::vector<std::string>& names);

// OK, or the error of a call: "cudaMalloc: out of memory".
//
//   kResourceExhausted  the GPU has no more memory
//   kInternal           all others
absl::Status ToStatus(const CudaFunctions& cuda, const std::string& call,
                      CudaResult result);

// OK for kNcclInProgress too.
//
//   kAborted   another member, or the way to it, has failed
//   kInternal  all others
absl::Status ToStatus(const NcclFunctions& nccl, const std::string& call,
                      NcclResult result);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_NCCL_NCCL_LIBRARY_H_
