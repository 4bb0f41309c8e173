// The part of ChiefProcess that a recovery round calls.

#include "common/base/passing_error.h"
#include "common/base/status_macros.h"
#include "tests/conformance/simulation/chief_process.h"

namespace lockstep::simulation {

void ChiefProcess::Do(const chief::Recover& recover) {
  for (auto& server : calls_) server->set_waiting(waiting_);
  Plan plan = job_.plan;
  if (job_.Has(PlantedBug::kCopiesAreGivenUp)) plan.mirrored = false;
  const auto outcome = round_.Run(plan, recover.request);
  job_.Trace([&] {
    return absl::StrCat("round of epoch ", group_.epoch(), ": ",
                        outcome.ok() ? absl::StrCat("step ", outcome->step)
                                     : outcome.status().ToString());
  });
  if (!outcome.ok()) return Post(chief::RecoveryDone{outcome.status()});
  plan_ = outcome->map.plan;
  plan_.mirrored = job_.plan.mirrored;
  // Workers that register again need the plan of the mirrors that now sum.
  if (driver_.opened()) status_table_.PublishPlan(plan_);
  Post(chief::RecoveryDone{chief::RoundOutcome{
      outcome->plan, outcome->step, outcome->checkpoint_step, group_.epoch(),
      outcome->servers}});
}

absl::StatusOr<int64_t> ChiefProcess::LatestStep() const {
  return job_.checkpoints.empty() ? -1 : job_.checkpoints.rbegin()->first;
}

absl::StatusOr<std::optional<chief::RecoverySource::Restored>>
ChiefProcess::Restore(const chief::StateMap&) {
  ++job_.unfinished_removed;
  if (job_.checkpoints.empty()) return std::nullopt;
  const auto [step, checkpoint] = *job_.checkpoints.rbegin();
  chief::JobActions actions;
  driver_.OnRestore(checkpoint.settings, actions);
  Carry(actions);
  std::vector<PartState> all;
  for (const std::vector<PartState>& of_server : checkpoint.servers) {
    all.insert(all.end(), of_server.begin(), of_server.end());
  }
  for (const int server : group_.used()) {
    LOCKSTEP_RETURN_IF_ERROR(calls_[server]->WriteAll(
        job_.plan.mirrored ? all : checkpoint.servers[server]));
  }
  return Restored{step, {}};
}

absl::Status ChiefProcess::Group::Transfer(
    const chief::StateMap& /*map*/, chief::ShardCalls& from,
    const std::vector<chief::ShardCalls*>& to,
    const chief::OnTransferred& /*on_transferred*/) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<PartState> parts,
      static_cast<ChiefCalls&>(from).ReadAll(waiting_, epoch()));
  for (PartState& part : parts) {
    if (job_.Has(PlantedBug::kCopyLacksSlots)) part.momentum = 0;
  }
  for (chief::ShardCalls* one : to) {
    LOCKSTEP_RETURN_IF_ERROR(static_cast<ChiefCalls*>(one)->WriteAll(parts));
  }
  return absl::OkStatus();
}

void ChiefProcess::OnLeftOut(int server, const absl::Status& why) {
  if (!IsPassing(why)) ++job_.tally.left_out;
  if (job_.Has(PlantedBug::kBrokenMirrorIsAwaited)) return;
  driver_.deaths().LeaveOut(server, why);
}

absl::Status ChiefProcess::OnStartFrom(const chief::RecoveryPlan& plan,
                                       bool first) {
  chief::JobActions actions;
  const absl::Time until =
      driver_.OnStartFrom(plan, first, LatestStep().value_or(-1), actions);
  Carry(actions);
  const absl::Duration wait = until - job_.world.Now();
  if (wait > absl::ZeroDuration()) waiting_.Sleep(wait);
  return absl::OkStatus();
}

absl::Status ChiefProcess::OnWorking(const std::string& what) {
  chief::JobActions actions;
  const absl::Status stop = driver_.OnWorking(what, job_.world.Now(), actions);
  Carry(actions);
  if (!stop.ok()) return stop;
  return stop_.value_or(absl::OkStatus());
}

}  // namespace lockstep::simulation
