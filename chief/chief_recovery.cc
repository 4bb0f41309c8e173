// The part of Chief that brings all servers to one committed step: when it
// starts, and when a server has been away.

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "chief/chief.h"
#include "chief/plan/placement.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/variable_settings.h"
#include "common/text/count_text.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kReportAfter = absl::Seconds(5);
constexpr absl::Duration kReportEvery = absl::Seconds(10);
// How long a chief that finds a checkpoint of the last step waits for members:
// those that ended with the job do not come.
constexpr absl::Duration kAfterTheEnd = absl::Seconds(10);

// How long members need to find a chief that has been started again.
constexpr absl::Duration kTakeOver = absl::Seconds(2);

std::string Rounded(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(10)));
}

}  // namespace

absl::Status Chief::WaitForMembers() {
  const absl::Time began = clock_.Now();
  while (true) {
    std::vector<std::string> missing;
    for (const TaskId& task : members_.NotAlive(TaskType::kPs)) {
      missing.push_back(task.ToString());
    }
    if (board_.variables().empty()) {
      missing.push_back("a worker that describes the model");
    }
    if (missing.empty()) return absl::OkStatus();
    const absl::Time now = clock_.Now();
    if (FinishedBefore(now - began)) return absl::OkStatus();
    board_.SetWaits({{"chief", absl::StrJoin(missing, ", "), began}});
    if (now - std::max(began, last_report_) > kReportAfter) {
      last_report_ = now;
      spdlog::info("waiting for {} since {}", absl::StrJoin(missing, ", "),
                   absl::FormatDuration(
                       absl::Trunc(now - began, absl::Milliseconds(100))));
    }
    LOCKSTEP_RETURN_IF_ERROR(StopRequested());
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      // A worker that cannot start on this job would not do so later either;
      // the job goes on without an evaluator.
      if (dead.task.type == TaskType::kWorker &&
          dead.leave == LeaveCause::kCannotTakePart) {
        return absl::AbortedError(
            absl::StrCat(dead.task.ToString(), " ", dead.reason));
      }
      members_.Buried(dead.task, dead.incarnation);  // holds nothing yet
    }
    absl::SleepFor(kTick);
  }
}

bool Chief::FinishedBefore(absl::Duration waited) {
  if (loop_.has_value() || waited <= kAfterTheEnd || beginning_.anew()) {
    return false;
  }
  const int64_t latest = LatestStep().value_or(-1);
  finished_before_ = latest >= job_.train_steps && whole_.Check(latest).ok();
  if (finished_before_) {
    board_.Stepped(latest, clock_.Now());
    board_.Checkpointed(latest);
  }
  return finished_before_;
}

absl::Status Chief::SetUp() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckGradientType(board_.variables(), job_.gradient_wire_type));
  LOCKSTEP_RETURN_IF_ERROR(SettingsOf(job_, board_.variables()).status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      map_.plan,
      MakePlan(board_.variables(), servers_.size(), job_.max_part_bytes,
               job_.placement, job_.partitioner));
  LOCKSTEP_RETURN_IF_ERROR(BringTogether(clock_.Now()));
  if (finished_before_) return absl::OkStatus();
  spdlog::info("{} in {} on {}, epoch {}",
               CountText(std::ssize(map_.plan.variables), "variable"),
               CountText(std::ssize(map_.plan.parts), "part"),
               CountText(static_cast<int64_t>(servers_.size()), "server"),
               servers_.epoch());
  board_.SetWaits({});
  opened_ = clock_.Now();
  board_.StartTraining(loop_->step(), clock_.Now());
  board_.PublishPlan(map_.plan);
  return absl::OkStatus();
}

absl::Status Chief::Recover() {
  const absl::Time began = step_began_;
  const int64_t step = loop_->step();
  const int64_t redone_before = losses_.steps_redone;
  LOCKSTEP_RETURN_IF_ERROR(BringTogether(clock_.Now()));
  const absl::Duration stood_still = clock_.Now() - began;
  losses_.recoveries += 1;
  losses_.stood_still += stood_still;
  spdlog::warn(
      "the job goes on from step {} (it was at {}), epoch {}; it "
      "stood still for {}",
      loop_->step(), step, servers_.epoch(), Rounded(stood_still));
  board_.SetWaits({});
  if (loop_->step() < step) {
    board_.Redone(absl::StrCat("steps ", loop_->step() + 1, " to ", step));
  } else if (losses_.steps_redone > redone_before) {
    board_.Redone(absl::StrCat("step ", step + 1));
  }
  board_.Stepped(loop_->step(), clock_.Now());
  board_.SetLosses(losses_);
  return absl::OkStatus();
}

absl::Status Chief::BringTogether(absl::Time began) {
  JoinCheckpoint();
  together_since_ = began;
  server_away_ = false;
  away_.clear();
  while (true) {
    LOCKSTEP_RETURN_IF_ERROR(WaitForServers(began));
    if (finished_before_) return absl::OkStatus();
    const absl::Status admitted = Admit();
    if (admitted.ok()) return absl::OkStatus();
    if (absl::IsAborted(admitted)) return Replaced(admitted);
    if (!Passing(admitted)) return admitted;
    away_ = std::string(admitted.message());
    absl::SleepFor(kTick);
  }
}

absl::Status Chief::Replaced(const absl::Status& status) {
  replaced_ = true;
  return absl::UnavailableError(
      absl::StrCat("a newer chief has taken over: ", status.message()));
}

void Chief::ReportServersAway(const std::string& whom, absl::Time began) {
  board_.SetWaits({{"everybody", whom, began}});
  const absl::Time now = clock_.Now();
  if (whom == said_ && now - last_report_ <= kReportEvery) return;
  said_ = whom;
  last_report_ = now;
  spdlog::warn("everybody waits for {} since {}", whom, Rounded(now - began));
}

absl::Status Chief::WaitForServers(absl::Time began) {
  while (true) {
    const absl::Time now = clock_.Now();
    for (const MembershipTable::Dead& dead : members_.TakeDead(now)) {
      // Workers have to wait: their servers are not together.
      if (dead.task.type != TaskType::kWorker) {
        LOCKSTEP_RETURN_IF_ERROR(Bury(dead));
      }
    }
    server_away_ = false;
    std::vector<std::string> away;
    for (const TaskId& task : members_.NotAlive(TaskType::kPs)) {
      away.push_back(absl::StrCat(task.ToString(), " (gone)"));
    }
    const std::string whom = !away.empty() ? absl::StrJoin(away, ", ")
                             : !away_.empty()
                                 ? absl::StrCat("the servers (", away_, ")")
                                 : "the servers";
    if (away.empty() && now - began < job_.max_wait) {
      if (!away_.empty()) ReportServersAway(whom, began);
      return absl::OkStatus();
    }
    if (FinishedBefore(now - began)) return absl::OkStatus();
    if (now - began >= job_.max_wait) {
      return absl::DeadlineExceededError(
          absl::StrCat("everybody waited longer than max_wait (",
                       absl::FormatDuration(job_.max_wait), ") for ", whom));
    }
    if (absl::Status stop = StopRequested();
        !stop.ok() && now - began > job_.lease) {
      return absl::FailedPreconditionError(
          absl::StrCat(stop.message(), ", while ", whom, " is away"));
    }
    ReportServersAway(whom, began);
    absl::SleepFor(kTick);
  }
}

absl::Status Chief::Admit() {
  const bool first = !loop_.has_value();
  std::optional<int64_t> step;
  if (!first) step = loop_->step();
  LOCKSTEP_ASSIGN_OR_RETURN(
      RecoveryRound::Outcome outcome,
      RecoveryRound(job_, servers_, members_, *this, clock_)
          .Run(map_.plan, step));
  map_ = std::move(outcome.map);
  retries_ = RetrySchedule(servers_.size());
  commit_again_.reset();
  granted_until_ = told_until_ = outcome.step;
  committed_attempt_ = 0;
  stalls_.SetSize(settings_.replicas_to_aggregate);
  board_.SetSettings(settings_);
  loop_.emplace(servers_.size(), outcome.step);
  if (outcome.plan.redo) ++losses_.steps_redone;
  losses_.steps_repeated += outcome.plan.repeated_steps;
  if (outcome.plan.action != RecoveryPlan::Action::kResume) {
    saved_step_ = outcome.checkpoint_step;
    policy_.emplace(job_.checkpoint, outcome.step, clock_.Now());
  } else if (first) {
    spdlog::warn("the servers hold step {} of this job: it goes on from there",
                 outcome.step);
    NoteDeath("chief", "started again",
              absl::StrCat("nothing: the servers hold step ", outcome.step),
              outcome.plan.redo ? absl::StrCat("step ", outcome.step + 1) : "");
    saved_step_ = outcome.checkpoint_step;
    if (saved_step_ >= 0) board_.Checkpointed(saved_step_);
    policy_.emplace(job_.checkpoint, saved_step_, clock_.Now());
  }
  return absl::OkStatus();
}

absl::Status Chief::OnWorking(const std::string& what) {
  const absl::Time now = clock_.Now();
  board_.SetWaits({{"everybody", what, together_since_}});
  if (now - std::max(together_since_, last_report_) > kReportAfter) {
    last_report_ = now;
    spdlog::info("everybody waits for {} since {}", what,
                 Rounded(now - together_since_));
  }
  return StopRequested();
}

void Chief::OnEpoch(uint64_t epoch) { board_.SetEpoch(epoch); }

bool Chief::OnResume(absl::Span<const ServerReport> reports, bool first) {
  // ps task 0 has the word: on others there may be a change that the chief
  // before has not brought to its end.
  if (first && reports[0].settings.revision > 0) {
    settings_ = reports[0].settings;
  }
  return SumsOtherwise(reports);
}

void Chief::OnStartFrom(const RecoveryPlan& plan, bool first) {
  if (!first) loop_.emplace(servers_.size(), plan.step);
  if (plan.action != RecoveryPlan::Action::kGoBack) return;
  spdlog::error("{}: all servers go back to {}; repeated: {}", plan.reason,
                Describe(plan.step), CountText(plan.repeated_steps, "step"));
  if (!first) return;
  absl::SleepFor(started_ + kTakeOver + job_.heartbeat_interval - clock_.Now());
}

absl::StatusOr<std::optional<RecoverySource::Restored>> Chief::Restore(
    const StateMap& map) {
  RemoveUnfinished();
  const std::optional<CheckpointReader> checkpoint =
      std::exchange(newest_whole_, std::nullopt);
  const bool done = checkpoint.has_value() &&
                    checkpoint->manifest().global_step >= job_.train_steps;
  // A job that is on its way can wait for its volume; one that starts would
  // find out with its first checkpoint.
  if (!loop_.has_value() && !done && !store_.directory().empty()) {
    LOCKSTEP_RETURN_IF_ERROR(store_.CheckWritable());
  }
  if (!checkpoint.has_value()) return std::nullopt;
  if (!loop_.has_value()) RestoreSettings(checkpoint->manifest());
  Restored restored{checkpoint->manifest().global_step, {}};
  absl::StatusOr<std::vector<float>> scalars =
      servers_.Restore(*checkpoint, map);
  if (absl::IsDataLoss(scalars.status())) {
    // The round begins anew, and passes over it.
    whole_.FoundDamaged(restored.step, scalars.status());
    return absl::UnavailableError(scalars.status().message());
  }
  LOCKSTEP_RETURN_IF_ERROR(scalars.status());
  restored.scalars = *std::move(scalars);
  board_.Checkpointed(restored.step);
  const std::string resumed =
      absl::StrCat("resumed from the checkpoint of step ", restored.step,
                   " in ", store_.directory());
  spdlog::info("{}", resumed);
  board_.Notify(resumed, clock_.Now());
  return restored;
}

std::string Chief::Describe(int64_t step) const {
  if (LatestStep().value_or(-1) == step) {
    return absl::StrCat("the checkpoint of step ", step);
  }
  return "their initial values, since there is no checkpoint";
}

void Chief::NoteDeath(const std::string& task, const std::string& reason,
                      const std::string& held, const std::string& redone) {
  board_.Died({.task = task,
               .reason = reason,
               .held = held,
               .redone = redone,
               .at = clock_.Now()});
}

absl::Status Chief::Bury(const MembershipTable::Dead& dead) {
  const std::string name = dead.task.ToString();
  if (dead.task.type == TaskType::kWorker) return BuryWorker(dead);
  members_.Buried(dead.task, dead.incarnation);
  if (dead.task.type != TaskType::kPs) {
    spdlog::warn("{} is gone ({})", name, dead.reason);
    if (dead.cause != DeathCause::kLeft) {
      NoteDeath(name, dead.reason, "nothing");
    }
  } else if (dead.cause == DeathCause::kLeft) {
    RequestStop(absl::StrCat(name, " ", dead.reason));
  } else {
    const std::string held = absl::StrCat(
        "its share of step ", loop_.has_value() ? loop_->step() : 0);
    spdlog::warn("{} is gone ({}); it holds {}", name, dead.reason, held);
    NoteDeath(name, dead.reason, held);
    server_away_ = true;
  }
  return absl::OkStatus();
}

absl::Status Chief::CheckEnoughAreLeft(
    const MembershipTable::Dead& dead) const {
  if (dead.leave != LeaveCause::kCannotTakePart) return absl::OkStatus();
  int failed = 0;
  for (const MembershipTable::Member& member : members_.Members()) {
    failed += member.task.type == TaskType::kWorker &&
              member.state == MembershipTable::State::kLeft &&
              member.leave == LeaveCause::kCannotTakePart;
  }
  const int needed = std::min(settings_.replicas_to_aggregate, num_workers());
  const int left = num_workers() - ended_inputs_ - failed;
  if (left >= needed) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      dead.task.ToString(), " ", dead.reason, "; ", std::max(left, 0), " of ",
      num_workers(), " workers are left, and a step needs ", needed));
}

absl::Status Chief::BuryWorker(const MembershipTable::Dead& dead) {
  const std::string name = dead.task.ToString();
  const int worker = dead.task.index;
  // So it would go for any worker that takes its place.
  if (dead.leave == LeaveCause::kNoRoom) {
    return absl::ResourceExhaustedError(absl::StrCat(name, " ", dead.reason));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckEnoughAreLeft(dead));
  if (burials_.Pauses(worker, clock_.Now())) return absl::OkStatus();
  absl::StatusOr<ShardControlClient::Expired> expired =
      servers_.ExpireWorker(worker, dead.incarnation, dead.reason);
  if (absl::IsAborted(expired.status())) return Replaced(expired.status());
  if (!expired.ok()) {
    burials_.Failed(worker, clock_.Now());
    spdlog::warn("{}: {}; trying again", name, expired.status().message());
    return absl::OkStatus();
  }
  burials_.Answered(worker);
  HearOfAttempt(expired->step, expired->attempt);
  const std::string held = expired->held_announcement ? "an announcement"
                           : expired->held_token      ? "a token"
                                                      : "nothing";
  if (dead.cause == DeathCause::kUnknown) {
    spdlog::info("{} is let in; it was {}", name, dead.reason);
  } else {
    spdlog::warn("{} is gone ({}); it held {}", name, dead.reason, held);
  }
  if (dead.cause == DeathCause::kSilent ||
      dead.cause == DeathCause::kReplaced) {
    NoteDeath(name, dead.reason, held,
              expired->held_announcement
                  ? absl::StrCat("step ", expired->step + 1)
                  : "");
  }
  if (expired->held_announcement) {
    ++losses_.steps_redone;
    board_.SetLosses(losses_);
  }
  members_.Buried(dead.task, dead.incarnation);
  if (dead.leave == LeaveCause::kEndOfInput) {
    ++ended_inputs_;
  } else if (job_.elastic_workers && dead.cause == DeathCause::kLeft) {
    desk_.Leave(worker);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
