#include "worker/compute/registry.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/compute/cpu/cpu_backend.h"

#ifdef LOCKSTEP_WITH_CUDA
#include "worker/compute/cuda/cuda_backend.h"
#endif

namespace lockstep::worker {
namespace {

using MadeBackend = absl::StatusOr<std::unique_ptr<ComputeBackend>>;

MadeBackend MakeCpu(const BackendOptions& options) {
  return CpuBackend::Make({.threads = options.threads});
}

#ifdef LOCKSTEP_WITH_CUDA
MadeBackend MakeCuda(int gpu) { return MakeCudaBackend(gpu); }
int CountCuda() { return CountCudaDevices(); }
#else
int CountCuda() { return 0; }
MadeBackend MakeCuda(int /*gpu*/) {
  return absl::FailedPreconditionError(
      "backend cuda: this build has no CUDA; use cpu or auto");
}
#endif

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeBackend(
    const std::string& name, const BackendOptions& options) {
  if (name == "cpu") return MakeCpu(options);
  if (name == "cuda") return MakeCuda(options.gpu);
  if (name == "auto") {
    MadeBackend cuda = MakeCuda(options.gpu);
    // Any other error comes from a device that is there: computing on the CPU
    // instead would hide it.
    return absl::IsFailedPrecondition(cuda.status()) ? MakeCpu(options)
                                                     : std::move(cuda);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device is \"", name, "\", but must be auto, cpu or cuda"));
}

int CountGpus() { return CountCuda(); }

std::string WhyNoGpu() {
  const MadeBackend cuda = MakeCuda(/*gpu=*/0);
  return cuda.ok() ? "" : std::string(cuda.status().message());
}

}  // namespace lockstep::worker
