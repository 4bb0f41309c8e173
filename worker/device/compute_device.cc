#include "worker/device/compute_device.h"

#include <filesystem>
#include <system_error>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

// True if a driver shows a GPU, even one that cannot be used. /dev/dxg is the
// driver's device under WSL.
bool ShowsGpu(const std::string& devices) {
  std::error_code error;
  return std::filesystem::exists(devices + "/nvidiactl", error) ||
         std::filesystem::exists(devices + "/dxg", error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ComputeBackend>> OpenComputeDevice(
    const std::string& name, int threads, const std::string& devices) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<ComputeBackend> backend,
                            MakeBackend(name, {.threads = threads}));
  if (name != "auto" || !backend->UsesOrdinaryMemory()) {
    spdlog::info("computes on {}", backend->name());
  } else if (ShowsGpu(devices)) {
    spdlog::info("computes on {} ({})", backend->name(), WhyNoGpu());
  } else {
    spdlog::info("computes on {}: no GPU here", backend->name());
    spdlog::debug("{}", WhyNoGpu());
  }
  return backend;
}

}  // namespace lockstep::worker
