#include "worker/device/compute_device.h"

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/compute/registry.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ComputeBackend>> OpenComputeDevice(
    const std::string& name, int threads) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ComputeBackend> backend,
                            MakeBackend(name, {.threads = threads}));
  if (name == "auto" && backend->UsesOrdinaryMemory()) {
    spdlog::info("computes on {} ({})", backend->name(), WhyNoGpu());
  } else {
    spdlog::info("computes on {}", backend->name());
  }
  return backend;
}

}  // namespace lockstep
