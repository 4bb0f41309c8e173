#include "chief/job/training.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/backups/member_news.h"
#include "common/job/work_checks.h"
#include "common/plan/number_tree.h"
#include "common/text/count_text.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

// The time for which something may be missing before the log says so, and
// between lines.
constexpr absl::Duration kReportAfter = absl::Seconds(5);
constexpr absl::Duration kReportEvery = absl::Seconds(10);

}  // namespace

void Training::Interrupt() {
  awaits_copy_ = false;
  replacement_.Forget();
  tuner_.StoodStill();
}

Training::Turn Training::OnTake(const TakeAnswered& event) {
  const Turn turn = Heard(steps_.OnTake(event, context_.now, context_.out));
  // The answer may report a member whose connection has broken.
  if (turn == Turn::kGoesOn && !context_.settings.now().paused) {
    ReplaceStalled();
  }
  return turn;
}

Training::Turn Training::OnCommit(const CommitAnswered& event) {
  return Heard(steps_.OnCommit(event, context_.now, context_.out));
}

Training::Turn Training::Heard(const absl::StatusOr<StepDriver::Heard>& heard) {
  if (!heard.ok()) {
    result_ = heard.status();
    return absl::IsAborted(result_) ? Turn::kReplaced : Turn::kEnded;
  }
  if (*heard == StepDriver::Heard::kBegunAnew)
    context_.NoteRedone(steps_.step());
  if (*heard != StepDriver::Heard::kStepped) return Turn::kGoesOn;
  context_.Reach(steps_.step());
  context_.out.push_back(Waits{});
  // With grants left the server may commit further steps before it learns of
  // the stop.
  if (context_.stop.has_value() && steps_.MayStandStill()) {
    TellCommit();
    // A worker that has failed may be the reason of the stop, or of its haste.
    const absl::Status enough = deaths_.BuryAll();
    return End(enough.ok() ? *context_.stop : enough);
  }
  return NextStep();
}

Training::Turn Training::NextStep() {
  input_ended_ = false;  // a job that has gone back has data again
  const bool over = steps_.step() >= context_.job.train_steps;
  if (!over) TuneNextStep();
  return context_.settings.ToChange() && !over ? Turn::kNewSettings
                                               : BeginStep();
}

Training::Turn Training::BeginStep() {
  const int64_t step = steps_.step();
  if (step >= context_.job.train_steps) {
    TellCommit();
    return End(absl::OkStatus());
  }
  // Step 0 needs no checkpoint: its values are the initial ones.
  if (step > 0 && steps_.MayStandStill()) {
    checkpoints_.MaybeStart(step, steps_.committed_attempt(), context_.now,
                            context_.out);
  }
  if (context_.settings.now().paused) {
    TellCommit();
    return Turn::kGoesOn;
  }
  awaits_copy_ = checkpoints_.copying();
  if (awaits_copy_) {
    // The step begins when the copy is made: a commit during the copy would
    // spoil it.
    steps_.RestartTime(context_.now);
  } else {
    BeginGranted();
  }
  return Turn::kGoesOn;
}

void Training::BeginGranted() {
  const bool pauses = context_.stop.has_value() ||
                      context_.settings.ToChange() ||
                      checkpoints_.IsToBegin(steps_.step(), context_.now);
  steps_.Begin(pauses, checkpoints_.NextDueStep(steps_.step()), context_.now,
               context_.out);
}

void Training::TellCommit() {
  if (steps_.committed_attempt() == 0) return;  // Activate() gave the step
  std::vector<int> others = steps_.servers();
  std::erase(others, 0);
  context_.out.push_back(chief::TellCommit{
      steps_.step(), steps_.committed_attempt(), std::move(others)});
}

void Training::OnCopied() {
  // No step waits: the job is paused, or the servers are being brought
  // together.
  if (!std::exchange(awaits_copy_, false)) return;
  BeginGranted();
}

void Training::OnReplace(const ReplaceAnswered& event) {
  const auto decided = replacement_.OnAnswer(event, context_.out);
  if (!decided.has_value()) return;
  steps_.OnAttempt(decided->step, decided->attempt, context_.now, context_.out);
}

Training::Turn Training::OnTick() {
  // Workers of an earlier chief have had a lease to send a heartbeat.
  if (context_.now - opened_ > context_.job.lease) {
    context_.members.GiveUpPredecessors();
  }
  const absl::Duration age = context_.now - steps_.began();
  const bool paused = context_.settings.now().paused;
  // Before the stop, so that a worker's failure is the result of the job: the
  // program that fails may also stop the chief that it carries.
  if (absl::Status status = deaths_.BuryAll(); !status.ok()) return End(status);
  // A stop takes effect between steps; without gradients no step would end.
  if (context_.stop.has_value() &&
      (paused || age > context_.job.lease || deaths_.TooFewStay())) {
    return End(*context_.stop);
  }
  HearWorkers();
  if (paused) {
    if (steps_.between_steps()) StandStill();
  } else {
    ReplaceStalled();
    TuneStepAtHand();
    ReportWaits();
    // The calls of a copy have limits of their own.
    if (age >= context_.job.max_wait && !awaits_copy_) {
      return End(absl::DeadlineExceededError(absl::StrCat(
          "step ", steps_.step() + 1, " waited longer than max_wait (",
          absl::FormatDuration(context_.job.max_wait), ") for ",
          steps_.Waits(context_.members.Members(), context_.now).Summary())));
    }
  }
  if (deaths_.TakeServerAway()) return Turn::kServerAway;
  // In compatible mode the gradients that accumulators have taken for the step
  // would be lost, so the current step ends first.
  if (context_.settings.ToChange() &&
      (context_.job.mode == SyncMode::kStrict || steps_.between_steps())) {
    return NextStep();
  }
  if (!deaths_.InputEnded()) return Turn::kGoesOn;
  Info(context_.out, absl::StrCat("the input ended at step ", steps_.step()));
  input_ended_ = true;
  return End(absl::OkStatus());
}

void Training::StandStill() {
  // The checkpoint that is being written may be the one of this step, which is
  // due until it is written.
  if (steps_.step() > 0 && !checkpoints_.busy()) {
    checkpoints_.MaybeStart(steps_.step(), steps_.committed_attempt(),
                            context_.now, context_.out);
  }
  if (steps_.began() != absl::InfinitePast()) {
    context_.out.push_back(
        Waits{{{"the job", "an operator to resume it", steps_.began()}}});
  }
}

void Training::ReplaceStalled() {
  const JobSettings& settings = context_.settings;
  // Only a backup can take the place of a stalled member.
  const bool backups =
      context_.job.mode == SyncMode::kStrict && !context_.job.shares_work() &&
      settings.num_workers() > settings.now().replicas_to_aggregate;
  if (!backups || steps_.between_steps() ||
      !replacement_.MayBegin(context_.now)) {
    return;
  }
  const std::optional<StallWatch::Found> stalled = steps_.Stalled(context_.now);
  if (!stalled.has_value()) return;
  replacement_.Begin(
      *stalled, steps_.step(), steps_.attempt(),
      stalled->lost
          ? "its connection has ended"
          : absl::StrCat("no gradient of it came for ",
                         absl::FormatDuration(context_.job.stall_timeout)),
      steps_.round(), context_.now, context_.out);
}

void Training::TuneNextStep() {
  // A change that waits comes first; the tuner then measures under it.
  if (context_.settings.ToChange()) return;
  // A change would stop training until the checkpoint is written.
  if (checkpoints_.busy()) return;
  if (ChoosesPushes(context_.job)) return TunePushes();
  if (!context_.settings.tuned()) return;
  const auto change = tuner_.AtBoundary(
      steps_.step(), context_.settings.now().replicas_to_aggregate,
      context_.settings.Workers(), context_.now);
  if (change.has_value()) Want(*change);
}

void Training::HearWorkers() {
  if (!context_.settings.tuned()) return;
  HearMembers(context_.members.Members(), context_.job.heartbeat_interval,
              context_.now, tuner_);
}

void Training::TuneStepAtHand() {
  if (!context_.settings.tuned()) return;
  if (steps_.between_steps() || context_.settings.ToChange()) return;
  const auto change = tuner_.WhileWaiting(
      steps_.step(), context_.settings.now().replicas_to_aggregate,
      steps_.num_announced(), context_.now);
  if (change.has_value()) Want(*change);
}

void Training::Want(const BackupTuner::Change& change) {
  const int workers = context_.settings.num_workers();
  const int before = context_.settings.now().replicas_to_aggregate;
  WantReplicas(
      change.replicas,
      absl::StrCat(CountText(workers - change.replicas, "backup"),
                   " instead of ", workers - before, ": ", change.why));
}

void Training::TunePushes() {
  HearMembers(context_.members.Members(), push_tuner_);
  const int numbers = context_.job.micro_batches_per_step;
  const int block =
      BlockSizeOf(numbers, context_.settings.now().replicas_to_aggregate);
  const auto change = push_tuner_.AtBoundary(steps_.step(), block,
                                             context_.settings.num_workers());
  if (!change.has_value()) return;
  WantReplicas(
      BlocksOf(numbers, change->block),
      absl::StrCat("a push has ", change->block,
                   change->block == 1 ? " micro-batch" : " micro-batches",
                   " instead of ", block, ": ", change->why));
}

void Training::WantReplicas(int replicas, const std::string& notice) {
  Notify(context_.out,
         absl::StrCat("AUTO: after step ", steps_.step(), ", ", notice));
  RunSettings wanted = context_.settings.now();
  wanted.replicas_to_aggregate = replicas;
  ++wanted.revision;
  context_.settings.Want(wanted);
  context_.out.push_back(Tuned{replicas});
}

void Training::ReportWaits() {
  const absl::Duration age = context_.now - steps_.began();
  // Shorter waits are part of every step.
  if (age < absl::Seconds(1)) return;
  std::vector<StatusTable::Wait> waits;
  if (awaits_copy_) {
    waits.push_back({"the job",
                     absl::StrCat("the servers to copy step ", steps_.step(),
                                  " for its checkpoint"),
                     steps_.began()});
  } else {
    waits = steps_.Waits(context_.members.Members(), context_.now).List();
  }
  if (age >= kReportAfter && context_.now - last_report_ >= kReportEvery) {
    last_report_ = context_.now;
    Warn(context_.out,
         absl::StrCat("step ", steps_.step() + 1, " has waited ",
                      DurationText(age), " for ", waits.front().waits_for));
  }
  if (context_.stop.has_value()) {
    waits.insert(waits.begin(),
                 {"the stop",
                  absl::StrCat("step ", steps_.step() + 1, " to end, ",
                               absl::FormatDuration(context_.job.lease),
                               " after its start at most"),
                  context_.stop_wanted_at});
  }
  context_.out.push_back(Waits{waits});
}

}  // namespace lockstep::chief
