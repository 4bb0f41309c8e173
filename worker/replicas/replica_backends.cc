#include "worker/replicas/replica_backends.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/replicas.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

int GpusOf(const ComputeBackend& backend) {
  return backend.UsesOrdinaryMemory() ? 0 : std::max(1, CountGpus());
}

std::string FirstName(int gpus) { return gpus > 0 ? "cuda:0" : "cpu:0"; }

// `field` is how the job asks for the device.
absl::StatusOr<std::unique_ptr<ComputeBackend>> OpenDevice(
    const std::string& name, int threads, absl::string_view field) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ReplicaDevice device,
                            ParseReplicaDevice(name));
  if (!device.is_gpu) return MakeBackend("cpu", {.threads = threads});
  auto backend = MakeBackend("cuda", {.gpu = device.number});
  if (absl::IsFailedPrecondition(backend.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", backend.status().message()));
  }
  return backend;
}

}  // namespace

ReplicaBackends::ReplicaBackends(std::unique_ptr<ComputeBackend> first,
                                 int threads)
    : threads_(threads), gpus_(GpusOf(*first)), devices_({FirstName(gpus_)}) {
  backends_.push_back(std::move(first));
}

int ReplicaBackends::gpus() const { return gpus_; }

std::vector<std::string> ReplicaBackends::DevicesOf(
    const JobConfig& job) const {
  if (!job.strategy.devices.empty()) return job.strategy.devices;
  std::vector<std::string> devices;
  const int count = ReplicasPerWorker(job, gpus_);
  for (int r = 0; r < count; ++r) {
    devices.push_back(absl::StrCat(gpus_ > 0 ? "cuda:" : "cpu:", r));
  }
  return devices;
}

absl::Status ReplicaBackends::Open(const JobConfig& job) {
  const std::vector<std::string> devices = DevicesOf(job);
  // A worker that registers again is in the same job, and keeps its devices.
  if (devices == devices_) return absl::OkStatus();
  const bool are_named = !job.strategy.devices.empty();
  const int all = threads_ > 0
                      ? threads_
                      : static_cast<int>(std::thread::hardware_concurrency());
  const int threads = std::max(1, all / static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<ComputeBackend>> opened;
  for (size_t r = 0; r < devices.size(); ++r) {
    if (r == 0 && devices[r] == devices_[r]) {
      opened.push_back(nullptr);  // it stays
      continue;
    }
    const std::string field =
        are_named
            ? absl::StrCat("strategy.devices[", r, "] is ", devices[r])
            : absl::StrCat("strategy.replicas_per_worker is ", devices.size());
    auto backend = OpenDevice(devices[r], threads, field);
    if (absl::IsInvalidArgument(backend.status())) {
      return absl::InvalidArgumentError(absl::StrCat(
          backend.status().message(),
          are_named ? ", or name other devices"
                    : ", lower the field, or compute with --device=cpu"));
    }
    LOCKSTEP_RETURN_IF_ERROR(backend.status());
    spdlog::info("replica {} computes on {}", r, devices[r]);
    opened.push_back(*std::move(backend));
  }
  if (opened[0] == nullptr) opened[0] = std::move(backends_[0]);
  backends_ = std::move(opened);
  devices_ = devices;
  return absl::OkStatus();
}

}  // namespace lockstep::worker
