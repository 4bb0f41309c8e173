#include "common/job/replicas.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

constexpr int kMaxReplicas = 64;  // of a worker, and numbers of devices
constexpr char kReplicas[] = "strategy.replicas_per_worker";
constexpr char kDevices[] = "strategy.devices";

// `field` has asked for `replicas`.
absl::Status CheckMayHave(const JobConfig& job, absl::string_view field,
                          int replicas) {
  if (replicas > 1 && job.strategy.kind == StrategyKind::kOneDevice) {
    return Wrong(field, replicas,
                 "1 where strategy.kind is ONE_DEVICE; set the kind to "
                 "MIRRORED for more");
  }
  if (replicas > 1 && HasTables(job.model)) {
    return Wrong(field, replicas,
                 absl::StrCat("1 where model.kind is \"", job.model.kind,
                              "\": one replica of a worker computes its "
                              "tables; start more workers instead, under "
                              "MULTI_WORKER_MIRRORED or PARAMETER_SERVER"));
  }
  return absl::OkStatus();
}

absl::Status CheckDevices(const JobConfig& job) {
  const std::vector<std::string>& devices = job.strategy.devices;
  const int wanted = job.strategy.replicas_per_worker;
  if (job.model.kind == kExternalModel) {
    return absl::InvalidArgumentError(
        absl::StrCat(kDevices, " is \"", devices[0],
                     "\", but model.kind is \"external\": a program of yours "
                     "chooses its device itself; leave the field out"));
  }
  if (devices.size() > kMaxReplicas) {
    return Wrong(absl::StrCat("number of ", kDevices), devices.size(),
                 absl::StrCat("at most ", kMaxReplicas));
  }
  if (wanted != 0 && wanted != static_cast<int>(devices.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(kReplicas, " is ", wanted, ", but ", kDevices, " has ",
                     devices.size(), " names; leave the number out"));
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(ParseReplicaDevice(devices[i]).status());
    if (std::count(devices.begin(), devices.begin() + static_cast<int>(i),
                   devices[i]) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(kDevices, " has \"", devices[i],
                       "\" twice; each replica needs a device of its own"));
    }
  }
  return CheckMayHave(job, absl::StrCat("number of ", kDevices),
                      static_cast<int>(devices.size()));
}

}  // namespace

absl::StatusOr<ReplicaDevice> ParseReplicaDevice(const std::string& name) {
  absl::string_view rest = name;
  ReplicaDevice device;
  device.is_gpu = absl::ConsumePrefix(&rest, "cuda:");
  const bool is_named = device.is_gpu || absl::ConsumePrefix(&rest, "cpu:");
  if (!is_named || rest.empty() || rest.size() > 2 ||
      !absl::SimpleAtoi(rest, &device.number) || device.number < 0 ||
      device.number >= kMaxReplicas || rest != absl::StrCat(device.number)) {
    return Wrong(
        kDevices, Excerpt(name),
        absl::StrCat("cpu:N or cuda:N, N from 0 to ", kMaxReplicas - 1));
  }
  return device;
}

absl::Status CheckReplicas(const JobConfig& job) {
  if (!job.strategy.devices.empty()) return CheckDevices(job);
  const int replicas = job.strategy.replicas_per_worker;
  LOCKSTEP_RETURN_IF_ERROR(CheckInt(kReplicas, replicas, 0, kMaxReplicas));
  return CheckMayHave(job, kReplicas, replicas);
}

bool HasReplicaOnEachGpu(const JobConfig& job) {
  const StrategyConfig& strategy = job.strategy;
  return strategy.replicas_per_worker == 0 && strategy.devices.empty() &&
         job.model.kind != kExternalModel && !HasTables(job.model) &&
         strategy.communication.order == SumOrder::kRank &&
         (strategy.kind == StrategyKind::kMirrored ||
          strategy.kind == StrategyKind::kMultiWorkerMirrored);
}

int ReplicasPerWorker(const JobConfig& job, int gpus) {
  const StrategyConfig& strategy = job.strategy;
  if (!strategy.devices.empty()) {
    return static_cast<int>(strategy.devices.size());
  }
  if (strategy.replicas_per_worker > 0) return strategy.replicas_per_worker;
  return HasReplicaOnEachGpu(job) ? std::clamp(gpus, 1, kMaxReplicas) : 1;
}

}  // namespace lockstep
