#include "server/rpc/shard_codec.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"
#include "common/wire/wire_codec.h"

namespace lockstep::server {
namespace {

// Checks the fields that a job file may omit and a chief fills in from the
// cluster.
absl::Status CheckFilledIn(const JobConfig& job) {
  if (job.replicas_to_aggregate > 0 && job.total_num_replicas > 0 &&
      (job.mode == SyncMode::kStrict || job.initial_tokens != -1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "job: replicas_to_aggregate is ", job.replicas_to_aggregate,
      ", total_num_replicas ", job.total_num_replicas, ", initial_tokens ",
      job.initial_tokens, "; a server needs all of them filled in"));
}

absl::StatusOr<std::vector<VariableSpec>> ToVariables(
    const v1::CreateShardRequest& request) {
  std::vector<VariableSpec> variables;
  for (const v1::VariableDescription& proto : request.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableSpec variable, FromProto(proto));
    variables.push_back(std::move(variable));
  }
  return variables;
}

absl::StatusOr<std::vector<PartSpec>> ToParts(
    const v1::CreateShardRequest& request,
    const std::vector<VariableSpec>& variables, bool mirrored) {
  std::vector<PartSpec> parts;
  for (const v1::Part& part : request.parts()) {
    if (part.variable() < 0 ||
        part.variable() >= static_cast<int>(variables.size()) ||
        part.index() != static_cast<int>(parts.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parts[", parts.size(), "] names variable ", part.variable(), " of ",
          variables.size(), " and has index ", part.index()));
    }
    // A negative reducer would stand for this server itself.
    if (mirrored && part.server() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("parts[", parts.size(), "].server is ", part.server(),
                       ", must be at least 0"));
    }
    const VariableSpec& variable = variables[part.variable()];
    // In a mirrored job every server has all parts, and the plan's server sums.
    const bool copied = mirrored && part.server() != request.server();
    parts.push_back({part.variable(), part.offset(), part.count(),
                     variable.dtype,
                     variable.is_table() ? RowWidth(variable.shape) : 0,
                     std::max<int64_t>(part.row_stride(), 1), variable.grows(),
                     copied ? part.server() : -1});
  }
  return parts;
}

}  // namespace

absl::StatusOr<ShardDescription> ToDescription(
    const v1::CreateShardRequest& request) {
  ShardDescription description;
  LOCKSTEP_ASSIGN_OR_RETURN(description.job, FromProto(request.job()));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(description.job));
  LOCKSTEP_RETURN_IF_ERROR(CheckFilledIn(description.job));
  LOCKSTEP_ASSIGN_OR_RETURN(description.variables, ToVariables(request));
  const bool mirrored =
      description.job.strategy.kind == StrategyKind::kMultiWorkerMirrored;
  LOCKSTEP_ASSIGN_OR_RETURN(description.parts,
                            ToParts(request, description.variables, mirrored));
  return description;
}

ChiefCommands::TakeOrder TakeOrderFrom(const v1::TakeAndApplyRequest& request) {
  ChiefCommands::TakeOrder order;
  order.step = request.step();
  order.commit_until = request.commit_until();
  order.attempt = request.attempt();
  if (request.has_norm()) {
    order.norm = MeanNorm{request.norm().attempt(), request.norm().norm()};
  }
  return order;
}

v1::CreateShardResponse Describe(Shard& shard) {
  v1::CreateShardResponse response;
  const Shard::Report report = shard.GetReport();
  response.set_active(report.active);
  response.set_committed_step(report.committed_step);
  response.set_prepared_step(report.prepared_step);
  response.set_attempt(report.attempt);
  response.set_opened_epoch(report.opened_epoch);
  *response.mutable_settings() = ToProto(shard.settings());
  for (const std::vector<std::string>& slots : shard.state().SlotNames()) {
    response.add_variables()->mutable_names()->Assign(slots.begin(),
                                                      slots.end());
  }
  for (const std::string& scalar : shard.state().ScalarNames()) {
    response.add_scalars(scalar);
  }
  return response;
}

void FillWorking(const FillProgress* progress, v1::Working& working) {
  if (progress == nullptr) return;
  working.set_done_bytes(static_cast<int64_t>(progress->done()));
  working.set_total_bytes(static_cast<int64_t>(progress->total()));
}

}  // namespace lockstep::server
