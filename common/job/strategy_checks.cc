#include "common/job/strategy_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/job/replicas.h"

namespace lockstep {
namespace {

absl::Status Contradicts(absl::string_view field, const absl::AlphaNum& value,
                         const JobConfig& job, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, ", but strategy.kind is ",
      StrategyKindName(job.strategy.kind), ", ", why,
      "; leave the field out, or set strategy.kind to PARAMETER_SERVER"));
}

// For a job's file that is meant for another kind.
constexpr char kTakesBack[] =
    "--set replicas_to_aggregate=0 --set total_num_replicas=0 takes the "
    "numbers of a job's file back";

// A step of one worker has one gradient, the mean of its replicas'.
absl::Status CheckOneWorker(const JobConfig& job) {
  if (job.mode == SyncMode::kCompatible) {
    return Contradicts("mode", "COMPATIBLE", job,
                       "whose one worker waits for no other");
  }
  if (job.tune_backups) {
    return Contradicts("replicas_to_aggregate", "AUTO", job,
                       "whose one worker can have no backup");
  }
  for (const auto& [field, count] :
       {std::pair{"replicas_to_aggregate", job.replicas_to_aggregate},
        {"total_num_replicas", job.total_num_replicas}}) {
    // 0 means as many as the cluster has workers, which is 1 here.
    if (count == 0 || count == 1) continue;
    return Contradicts(field, count, job,
                       absl::StrCat("whose one worker pushes one gradient a "
                                    "step and has no backups (",
                                    kTakesBack, ")"));
  }
  if (job.elastic_workers) {
    return Contradicts("elastic_workers", "true", job, "which has one worker");
  }
  if (job.gradient_wire_type != GradientType::kVariable) {
    return Contradicts("gradient_wire_type",
                       std::string(GradientTypeName(job.gradient_wire_type)),
                       job, "which sends gradients over no network");
  }
  if (job.model.row_limit > 0) {
    return Contradicts("model.row_limit", job.model.row_limit, job,
                       "and tables that grow need the strategy "
                       "PARAMETER_SERVER");
  }
  return absl::OkStatus();
}

// Every mirror needs the gradient of every worker. Mirrors would have to agree
// on the order in which rows are created.
absl::Status CheckMirrors(const JobConfig& job) {
  if (job.mode == SyncMode::kCompatible) {
    return Contradicts("mode", "COMPATIBLE", job,
                       "whose workers wait for one another");
  }
  if (job.tune_backups) {
    return Contradicts("replicas_to_aggregate", "AUTO", job,
                       "whose steps take the gradients of all workers; backups "
                       "need servers");
  }
  const int aggregated = job.replicas_to_aggregate;
  const int total = job.total_num_replicas;
  if (aggregated > 0 && total > 0 && aggregated != total) {
    return Contradicts(
        "replicas_to_aggregate", aggregated, job,
        absl::StrCat("whose steps take the gradients of all workers, of which "
                     "total_num_replicas is ",
                     total, "; backups need servers (", kTakesBack, ")"));
  }
  if (job.model.row_limit > 0) {
    return Contradicts("model.row_limit", job.model.row_limit, job,
                       "and tables that grow need servers");
  }
  return absl::OkStatus();
}

// A sum in another order than that of the workers.
absl::Status CheckOrder(const JobConfig& job) {
  if (job.strategy.communication.order == SumOrder::kRank) {
    return absl::OkStatus();
  }
  if (job.strategy.kind != StrategyKind::kMultiWorkerMirrored) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy.communication.order is RING, but strategy.kind is ",
        StrategyKindName(job.strategy.kind),
        ", whose sums are in the order of the workers; leave the field out, or "
        "set strategy.kind to MULTI_WORKER_MIRRORED"));
  }
  const int replicas = ReplicasPerWorker(job, /*gpus=*/1);
  if (replicas > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy.communication.order is RING, but each worker has ", replicas,
        " replicas and sends their mean; leave the field out, or start a "
        "worker for each replica"));
  }
  if (job.shares_work()) {
    return absl::InvalidArgumentError(
        "strategy.communication.order is RING, but work is SHARED, whose sums "
        "are in the order of the micro-batches; leave one of them out");
  }
  return absl::OkStatus();
}

// Only rings depend on what is added up together.
absl::Status CheckPacks(const JobConfig& job) {
  const CommunicationConfig& options = job.strategy.communication;
  if (options.bytes_per_pack == -1) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("strategy.communication.bytes_per_pack",
                                    options.bytes_per_pack, 0));
  if (options.order == SumOrder::kRing) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy.communication.bytes_per_pack is ", options.bytes_per_pack,
      ", but strategy.communication.order is RANK, whose sums do not depend on "
      "it; leave the field out, or set the order to RING"));
}

}  // namespace

const char* StrategyKindName(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kMultiWorkerMirrored:
      return "MULTI_WORKER_MIRRORED";
    case StrategyKind::kMirrored:
      return "MIRRORED";
    case StrategyKind::kOneDevice:
      return "ONE_DEVICE";
    case StrategyKind::kParameterServer:
      break;
  }
  return "PARAMETER_SERVER";
}

absl::Status CheckStrategy(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckReplicas(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckOrder(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckPacks(job));
  switch (job.strategy.kind) {
    case StrategyKind::kParameterServer:
      return absl::OkStatus();
    case StrategyKind::kMultiWorkerMirrored:
      return CheckMirrors(job);
    case StrategyKind::kMirrored:
    case StrategyKind::kOneDevice:
      break;
  }
  return CheckOneWorker(job);
}

absl::Status CheckStrategyWorkers(const JobConfig& job, int num_workers) {
  // One worker suits every strategy.
  if (job.strategy.kind == StrategyKind::kParameterServer || num_workers == 1) {
    return absl::OkStatus();
  }
  if (job.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
    const int aggregated = job.replicas_to_aggregate;
    if (aggregated == 0 || aggregated == num_workers) return absl::OkStatus();
    return Contradicts(
        "replicas_to_aggregate", aggregated, job,
        absl::StrCat("whose steps take the gradients of all ", num_workers,
                     " workers of the cluster; backups need servers"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy.kind is ", StrategyKindName(job.strategy.kind),
      ", which has one worker; the cluster has ", num_workers,
      ": leave one in it",
      job.strategy.kind == StrategyKind::kMirrored
          ? absl::StrCat(" and set strategy.replicas_per_worker to ",
                         num_workers)
          : "",
      ", or set strategy.kind to PARAMETER_SERVER"));
}

absl::Status CheckStrategyServers(const JobConfig& job, int num_workers,
                                  int num_ps) {
  const StrategyKind kind = job.strategy.kind;
  if (num_ps == 0 && kind == StrategyKind::kParameterServer) {
    return absl::InvalidArgumentError(
        "cluster.ps is empty, but strategy.kind is PARAMETER_SERVER; add 1 or "
        "more ps, or set strategy.kind to MULTI_WORKER_MIRRORED");
  }
  if (kind != StrategyKind::kMultiWorkerMirrored || num_ps == 0 ||
      num_ps == num_workers) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy.kind is MULTI_WORKER_MIRRORED, where each worker has a mirror; "
      "the cluster has ",
      num_workers, " workers and ", num_ps,
      " ps: leave cluster.ps out, so that workers host their mirrors, or give "
      "it as many ps as workers, ps i on the host of worker i"));
}

}  // namespace lockstep
