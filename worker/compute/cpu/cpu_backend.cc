#include "worker/compute/cpu/cpu_backend.h"

#include <cblas.h>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

template class KernelBackend<cpu::CpuDevice>;

namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

CpuBackend::CpuBackend() : KernelBackend(cpu::CpuDevice()) {}

absl::StatusOr<std::unique_ptr<CpuBackend>> CpuBackend::Make(
    const Options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads of the cpu backend must be in [0, ", kMaxThreads,
                     "], got ", options.threads));
  }
  // A setting of the library: the last backend made decides for all in the
  // process.
  if (options.threads > 0) openblas_set_num_threads(options.threads);
  return std::unique_ptr<CpuBackend>(new CpuBackend);
}

}  // namespace lockstep::worker
