#include "worker/compute/registry.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/compute/cpu/cpu_backend.h"

namespace lockstep {
namespace {

using MadeBackend = absl::StatusOr<std::unique_ptr<ComputeBackend>>;

MadeBackend MakeCpu(const BackendOptions& options) {
  return CpuBackend::Make({.threads = options.threads});
}

MadeBackend MakeCuda() {
  return absl::FailedPreconditionError(
      "backend cuda: this build has no CUDA; use cpu or auto");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeBackend>> MakeBackend(
    const std::string& name, const BackendOptions& options) {
  if (name == "cpu" || name == "auto") return MakeCpu(options);
  if (name == "cuda") return MakeCuda();
  return absl::InvalidArgumentError(absl::StrCat(
      "backend must be one of auto, cpu, cuda, got \"", name, "\""));
}

}  // namespace lockstep
