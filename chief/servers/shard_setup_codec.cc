#include "chief/servers/shard_setup_codec.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"
#include "common/plan/run_settings.h"
#include "common/wire/standing_codec.h"
#include "common/wire/wire_codec.h"

namespace lockstep::chief {

v1::CreateShardRequest ToCreateRequest(const JobConfig& job, const Plan& plan,
                                       int server, ShardCalls::State state) {
  v1::CreateShardRequest request;
  *request.mutable_job() = ToProto(job);
  for (const VariableSpec& variable : plan.variables) {
    *request.add_variables() = ToProto(variable);
  }
  const std::vector<Part> parts = PartsOf(plan, server);
  for (const Part& part : parts) *request.add_parts() = ToProto(part);
  request.set_discard(state == ShardCalls::State::kDiscard);
  if (!parts.empty()) request.set_server(server);
  return request;
}

absl::StatusOr<ShardCalls::Created> AnswerFrom(
    const v1::CreateShardResponse& response, size_t num_variables,
    bool takes_part) {
  LOCKSTEP_ASSIGN_OR_RETURN(RunSettings settings,
                            FromProto(response.settings()));
  LOCKSTEP_ASSIGN_OR_RETURN(auto workers, FromProto(response.workers()));
  std::vector<std::vector<std::string>> slots;
  for (const v1::VariableSlots& variable : response.variables()) {
    slots.emplace_back(variable.names().begin(), variable.names().end());
  }
  if (slots.size() != num_variables) {
    return absl::InternalError(absl::StrCat("variables: ", slots.size(),
                                            " answered for ", num_variables));
  }
  return ShardCalls::Created{
      std::nullopt,
      std::move(slots),
      {response.scalars().begin(), response.scalars().end()},
      {takes_part, response.active(), response.committed_step(),
       response.prepared_step(), std::move(settings), response.attempt(),
       std::move(workers), response.opened_epoch()}};
}

v1::ActivateRequest ToActivateRequest(const ShardCalls::Opening& opening) {
  v1::ActivateRequest request;
  request.set_global_step(opening.global_step);
  request.mutable_scalars()->Assign(opening.scalars.begin(),
                                    opening.scalars.end());
  request.set_attempt(opening.attempt);
  *request.mutable_settings() = ToProto(opening.settings);
  for (const auto& [worker, incarnation] : opening.expired) {
    v1::ExpiredWorker& expired = *request.add_expired();
    expired.set_worker(worker);
    expired.set_incarnation(incarnation);
  }
  FillStandings(opening.workers, *request.mutable_workers());
  return request;
}

}  // namespace lockstep::chief
