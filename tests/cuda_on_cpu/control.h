#ifndef LOCKSTEP_TESTS_CUDA_ON_CPU_CONTROL_H_
#define LOCKSTEP_TESTS_CUDA_ON_CPU_CONTROL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// How a test sets up the simulated devices of its process. A process that a
// test starts has its settings in the environment: see
// tests/cuda_on_cpu/README.md.
//
// Threads: safe to call from any thread, but no call of CUDA may be under way.
namespace lockstep::cuda_on_cpu {

struct Settings {
  int devices = 1;
  size_t memory = size_t{1} << 30;  // bytes of each device, at most 16 GiB
  // 0: streams do not wait. Else the seed of their delays, and of what a GPU
  // leaves open: the order of threads, and where memory is allocated.
  uint64_t seed = 0;
  // Devices read and write pageable memory too, as some do: copies of it are
  // asynchronous, as those of pinned memory.
  bool coherent = false;
};

// Begins anew with healthy devices. Memory, streams and events of before stay
// as they are.
void Configure(const Settings& settings);

// A call that fails: the `number`-th from now on, from 1, of the function
// called `call`, or of all functions if that is empty. Launches count as
// "cudaLaunchKernel". An error after which CUDA needs a new process loses the
// device, until Configure(). A call of cuBLAS that fails with
// cudaErrorMemoryAllocation returns CUBLAS_STATUS_ALLOC_FAILED, and
// CUBLAS_STATUS_EXECUTION_FAILED with any other.
struct Fault {
  std::string call;
  int64_t number = 1;
  cudaError_t error = cudaErrorUnknown;
};

// Replaces the fault of before.
void SetFault(const Fault& fault);
void ClearFault();
bool FaultHasHappened();

// The calls that have been made since the last call of this function, but for
// those that cannot fail.
std::vector<std::string> TakeCalls();

// Bytes of all devices that are allocated at present.
size_t AllocatedBytes();

}  // namespace lockstep::cuda_on_cpu

#endif  // LOCKSTEP_TESTS_CUDA_ON_CPU_CONTROL_H_
