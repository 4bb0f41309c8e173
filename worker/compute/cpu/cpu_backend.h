#ifndef LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
#define LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/backend/kernel_backend.h"
#include "worker/compute/cpu/cpu_device.h"

namespace lockstep::worker {

extern template class KernelBackend<cpu::CpuDevice>;

// CpuBackend computes with OpenBLAS and plain loops, on any memory of the
// process. It is also the reference for other backends.
//
// Threads: as ComputeBackend.
class CpuBackend : public KernelBackend<cpu::CpuDevice> {
 public:
  struct Options {
    int threads = 0;  // of OpenBLAS, in the whole process; 0: it decides
  };

  //   kInvalidArgument  threads outside [0, 1024]
  static absl::StatusOr<std::unique_ptr<CpuBackend>> Make(
      const Options& options);

  const char* name() const override { return "cpu"; }

 protected:
  CpuBackend();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COMPUTE_CPU_CPU_BACKEND_H_
