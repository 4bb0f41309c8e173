#include "chief/job/job_driver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/events/job_lines.h"
#include "chief/operators/settings_table.h"
#include "common/base/passing_error.h"

namespace lockstep::chief {
namespace {

// Bounds how late deaths, deadlines and the ends of pauses are noticed.
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr char kDoneBefore[] = "it was done before";
constexpr char kStepsReached[] = "train_steps reached";

}  // namespace

JobDriver::JobDriver(const JobConfig& job, const Options& options,
                     MembershipTable& members, absl::Time now)
    : options_(options),
      started_(now),
      context_(job, members, now, options.beginning.anew()),
      since_(now),
      last_tick_(now),
      gathering_(context_),
      steps_(job, options.num_servers),
      checkpoints_(job),
      deaths_(context_, steps_),
      servers_wait_(job),
      training_(context_, steps_, checkpoints_, deaths_, options.num_servers),
      saving_(context_, steps_, checkpoints_, deaths_),
      farewell_(context_, checkpoints_),
      why_done_(kStepsReached) {
  if (job.elastic_workers) members.AwaitWorkers();
}

JobActions JobDriver::On(const JobEvent& event, absl::Time now) {
  context_.now = now;
  std::visit([this](const auto& one) { Handle(one); }, event);
  // In other phases the calls of steps are void, and a round replaces them.
  if (phase_ == Phase::kTraining) steps_.AskAgain(now, context_.out);
  if (now - last_tick_ >= kTick) RunTick();
  return std::exchange(context_.out, {});
}

absl::Time JobDriver::next() const {
  const absl::Time tick = last_tick_ + kTick;
  return phase_ == Phase::kTraining ? std::min(tick, steps_.next()) : tick;
}

void JobDriver::Handle(const Tick&) {}

void JobDriver::RunTick() {
  context_.ForgiveSilence(std::exchange(last_tick_, context_.now));
  switch (phase_) {
    case Phase::kGathering:
      return Gather();
    case Phase::kTogether:
      return BeginRound();
    case Phase::kTraining:
      if (context_.servers.IsOneBack() && !context_.settings.ToChange()) {
        return BringTogether(Cause::kMirrorBack);
      }
      return Follow(training_.OnTick());
    case Phase::kSaving:
      return Follow(saving_.OnTick());
    case Phase::kScoring:
      return Score();
    case Phase::kFarewell:
      return SayFarewell();
    case Phase::kStarting:
    case Phase::kRound:
    case Phase::kOver:
      return;
  }
}

void JobDriver::Handle(const SettingsWanted& event) {
  if (takes_settings_) context_.settings.Want(event.settings);
}

void JobDriver::Handle(const CheckpointWanted&) { checkpoints_.Want(); }

void JobDriver::Handle(const StopWanted& event) {
  context_.WantStop(event.status);
}

// Before servers are open for the first time.

void JobDriver::Handle(const Started& event) {
  if (!event.status.ok()) return End(event.status);
  phase_ = Phase::kGathering;
  gathering_.Begin();
  Gather();
}

void JobDriver::Handle(const ModelDescribed&) {
  gathering_.ModelDescribed();
  if (phase_ == Phase::kGathering) Gather();
}

void JobDriver::Gather() {
  switch (gathering_.Look()) {
    case Gathering::Turn::kWaits:
      return LookForEndSince(gathering_.began());
    case Gathering::Turn::kAllThere:
      return BringTogether(Cause::kSetUp);
    case Gathering::Turn::kEnded:
      return End(gathering_.result());
  }
}

void JobDriver::LookForEndSince(absl::Time since) {
  if (!steps_.opened() && !BeginsAnew()) gathering_.LookForEnd(since);
}

void JobDriver::Handle(const EndFound& event) {
  const bool waits = phase_ == Phase::kGathering || phase_ == Phase::kTogether;
  if (steps_.opened() || !waits) return;
  context_.Reach(event.step);
  context_.out.push_back(CheckpointSaved{event.step, event.saved_at});
  why_done_ = kDoneBefore;
  SayDoneBefore(event.step, context_.job.train_steps,
                context_.job.checkpoint.directory, context_.out);
  End(absl::OkStatus());
}

// Rounds that bring the servers to one step.

void JobDriver::BringTogether(Cause cause) {
  phase_ = Phase::kTogether;
  since_ = context_.now;
  cause_ = cause;
  training_.Interrupt();
  deaths_.Forget();
  stand_still_.Begin(context_, steps_, cause == Cause::kSettings);
  servers_wait_.Begin(context_.now);
  BeginRound();
}

void JobDriver::BeginRound() {
  // A checkpoint is written with calls of the round before.
  if (checkpoints_.busy()) {
    servers_wait_.Begin(context_.now);  // the time before is no wait for them
    checkpoints_.ReportWait("the job", since_, context_.now, context_.out);
    // A stop does not wait for a volume that hangs.
    const absl::Status late = checkpoints_.CheckNotOverdue(context_.now);
    if (!late.ok() && context_.stop.has_value()) TogetherFailed(late);
    return;
  }
  if (auto s = deaths_.BuryBeforeRound(); !s.ok()) return TogetherFailed(s);
  // A mark that stayed would bring the servers together again after this round.
  const bool died = deaths_.TakeServerAway();
  if (died && cause_ == Cause::kMirrorBack) cause_ = Cause::kServerAway;
  if (died && cause_ == Cause::kSettings) stand_still_.ServerAway(context_.now);
  const absl::Time began = servers_wait_.began();
  const bool stops = context_.stop.has_value() || saving_.is_failing();
  deaths_.GiveUpTheAbsent(began, stops, stops || cause_ == Cause::kSaving);
  const ServersWait::Absent absent{context_.servers.Away(),
                                   context_.servers.AllGivenUpAt(began)};
  if (!absent.servers.empty()) LookForEndSince(began);
  const absl::StatusOr<bool> ready =
      servers_wait_.Ready(absent, context_.Stop(), context_.now, context_.out);
  if (!ready.ok()) return TogetherFailed(ready.status());
  if (!*ready) return;
  phase_ = Phase::kRound;
  Recover round;
  if (steps_.opened()) round.request.step = steps_.step();
  round.request.servers = context_.servers.ForRound();
  round.request.others_have_state =
      context_.servers.HasGivenUpOneOf(steps_.servers());
  round.request.opened_epoch = epoch_;
  deaths_.SendBackForPlan(round.request.servers);
  context_.out.push_back(round);
}

void JobDriver::OnFound(absl::Span<const ServerReport> reports) {
  if (context_.servers.OnFound(reports)) {
    context_.settings.Adopt(reports);
    context_.servers.SetWorkers(context_.settings.Workers());
  }
  deaths_.OnFound(reports);
}

bool JobDriver::OnResume(absl::Span<const ServerReport> reports, bool first) {
  if (first) {
    if (auto say = context_.settings.Adopt(reports)) Notify(context_.out, *say);
    // Workers that joined under an earlier chief are taken over, too.
    if (context_.job.elastic_workers) {
      context_.members.SetWorkers(settings().workers);
    }
  }
  return context_.settings.SumsOtherwise(reports);
}

absl::Status JobDriver::OnWorking(const std::string& what, absl::Time now,
                                  JobActions& out) {
  servers_wait_.ReportWork(what, now, out);
  return context_.Stop();
}

absl::Time JobDriver::OnStartFrom(const RecoveryPlan& plan, bool first,
                                  int64_t latest, JobActions& out) {
  deaths_.StartAnew(plan.action == RecoveryPlan::Action::kStart);
  if (!first) {
    steps_.GoBack(plan.step);
    out.push_back(WentBack{plan.step});
  }
  if (plan.action != RecoveryPlan::Action::kGoBack) return absl::InfinitePast();
  SayGoingBack(plan, latest, out);
  if (!first) return absl::InfinitePast();
  // Waits until every worker of an earlier chief has had time for a heartbeat:
  // only then is it known which workers must be shut out.
  return started_ + kTakeOver + context_.job.heartbeat_interval;
}

void JobDriver::OnRestore(const std::map<std::string, double>& manifest,
                          JobActions& out) {
  if (steps_.opened()) return;
  if (const auto line = context_.settings.Restore(manifest)) Notify(out, *line);
}

void JobDriver::Handle(const RecoveryDone& event) {
  if (phase_ != Phase::kRound) return;
  const absl::Status& status = event.outcome.status();
  if (status.ok()) return Opened(*event.outcome);
  if (absl::IsAborted(status)) return GiveWay(status);
  phase_ = Phase::kTogether;
  if (!IsPassing(status)) return TogetherFailed(status);
  if (context_.servers.AwaitsAll()) phase_ = Phase::kGathering;
  servers_wait_.RoundFailed(status, context_.now);
  last_tick_ = context_.now;  // the next round comes a tick later
}

void JobDriver::TogetherFailed(const absl::Status& status) {
  if (cause_ == Cause::kSetUp) return End(status);
  if (cause_ == Cause::kSaving) return Follow(saving_.GiveUp(status));
  EndTraining(status);
}

void JobDriver::Opened(const RoundOutcome& outcome) {
  const bool first = !steps_.opened();
  const int64_t step = outcome.step;
  epoch_ = outcome.epoch;
  // Again: a worker may have registered, and got the old plan, meanwhile.
  deaths_.SendBackForPlan(outcome.servers);
  steps_.Open(step, context_.settings.now().replicas_to_aggregate,
              outcome.servers);
  context_.servers.OnOpened();
  context_.out.push_back(SettingsInEffect{context_.settings.now()});
  if (outcome.plan.redo) context_.CountRedone(step);
  stand_still_.Found(step, outcome.plan.repeated_steps, context_);
  const int64_t saved = outcome.checkpoint_step;
  // A later round that resumes leaves the next checkpoint due as before.
  if (outcome.plan.action != RecoveryPlan::Action::kResume) {
    checkpoints_.Begin(step, saved, context_.now);
  } else if (first) {
    SayHeld(step, settings().paused, context_.out);
    // A server alone goes on committing steps without a chief.
    const bool alone = outcome.servers.size() == 1;
    context_.NoteChiefDeath(alone ? context_.now : started_, step,
                            outcome.plan.redo);
    if (saved >= 0) {
      context_.out.push_back(CheckpointSaved{saved, outcome.saved_at});
    }
    checkpoints_.Begin(saved, saved, context_.now);
    // The chief before may have died while it wrote the one that was due.
    if (checkpoints_.LacksOneAt(step)) checkpoints_.Want();
  }
  phase_ = Phase::kTraining;
  switch (cause_) {
    case Cause::kSetUp:
      return SetUp();
    case Cause::kSettings:
      return GoOnWithSettings();
    case Cause::kEndOfInput:
      return EndWithInput();
    case Cause::kServerAway:
    case Cause::kMirrorBack:
    case Cause::kSaving:
      return GoOnAfterDeath();
  }
}

void JobDriver::SetUp() {
  const int64_t step = steps_.step();
  if (context_.job.elastic_workers) {
    context_.members.SetWorkers(settings().workers);
  }
  context_.out.push_back(Waits{});
  context_.reached = step;
  context_.out.push_back(TrainingBegun{step});
  if (step >= context_.job.train_steps && checkpoints_.saved_step() == step) {
    why_done_ = kDoneBefore;
    SayDoneBefore(step, context_.job.train_steps,
                  context_.job.checkpoint.directory, context_.out);
  }
  takes_settings_ = true;
  context_.AdmitSettings();
  deaths_.TakeOutTheAbsent(/*opened=*/true);
  training_.Begin();
  Follow(training_.NextStep());
}

void JobDriver::GoOnAfterDeath() {
  stand_still_.Report(steps_.step(), epoch_, cause_ == Cause::kMirrorBack,
                      context_);
  if (cause_ == Cause::kSaving && !saving_.HasLostSteps()) {
    phase_ = Phase::kSaving;
    return saving_.Try();
  }
  const bool opens = cause_ == Cause::kSaving || cause_ == Cause::kEndOfInput;
  if (opens) OpenAgain();
  if (!context_.servers.CanMakeSteps()) return DoWithoutSteps();
  deaths_.TakeOutTheAbsent(opens);
  Follow(training_.NextStep());
}

void JobDriver::DoWithoutSteps() {
  if (context_.stop.has_value()) return EndTraining(*context_.stop);
  BringTogether(Cause::kServerAway);
}

void JobDriver::OpenAgain() {
  // The last steps must be made again, by workers that wait for the end.
  context_.out.push_back(StateReached{JobState::kTraining});
  // Workers may leave meanwhile, and operators may pause the job.
  context_.AdmitSettings();
  why_done_ = kStepsReached;
}

void JobDriver::ApplySettings() {
  settings_before_ = context_.settings.Apply();
  const std::vector<int>& workers = context_.settings.now().workers;
  if (settings_before_.workers != workers) {
    // A worker's share of the data follows from the set of workers, so every
    // worker must register again.
    context_.members.SetWorkers(workers);
    context_.servers.SetWorkers(workers);
    context_.members.ExpireAll(TaskType::kWorker,
                               "the workers of the job change", context_.now);
  }
  BringTogether(Cause::kSettings);
}

void JobDriver::GoOnWithSettings() {
  steps_.RestartTime(context_.now);
  stand_still_.ReportChange(steps_.step(), epoch_, context_);
  Warn(context_.out,
       absl::StrCat("from step ", steps_.step() + 1, " on: ",
                    DescribeChange(context_.job, settings_before_, settings()),
                    " (revision ", settings().revision, ")"));
  if (!context_.servers.CanMakeSteps()) return DoWithoutSteps();
  deaths_.TakeOutTheAbsent(/*opened=*/false);
  Follow(training_.BeginStep());
}

void JobDriver::Handle(const TakeAnswered& event) {
  if (phase_ == Phase::kTraining) Follow(training_.OnTake(event));
}

void JobDriver::Handle(const CommitAnswered& event) {
  if (phase_ == Phase::kTraining) Follow(training_.OnCommit(event));
}

void JobDriver::Handle(const ReplaceAnswered& event) {
  if (phase_ == Phase::kTraining) training_.OnReplace(event);
}

void JobDriver::Handle(const ExpireAnswered& event) {
  const absl::Status status =
      deaths_.OnExpireAnswered(event, phase_ == Phase::kTraining);
  if (!status.ok()) GiveWay(status);
}

void JobDriver::Follow(Training::Turn turn) {
  switch (turn) {
    case Training::Turn::kGoesOn:
      return;
    case Training::Turn::kNewSettings:
      return ApplySettings();
    case Training::Turn::kServerAway:
      return BringTogether(Cause::kServerAway);
    case Training::Turn::kEnded:
      return EndTraining(training_.result());
    case Training::Turn::kReplaced:
      return GiveWay(training_.result());
  }
}

// The end.

void JobDriver::EndTraining(const absl::Status& status) {
  const bool failed = !status.ok() && !absl::IsCancelled(status);
  if (training_.input_ended()) why_done_ = "the input ended";
  training_.Interrupt();
  context_.out.push_back(
      CloseSettings{"the job is finishing: its last checkpoint is written"});
  // The step at hand may still be committed, as this chief has asked or
  // granted; a round ends that, and says at which step the job is.
  if (training_.input_ended() && status.ok() && !saving_.begun()) {
    return BringTogether(Cause::kEndOfInput);
  }
  phase_ = Phase::kSaving;
  if (saving_.begun()) return Follow(saving_.TrainedAgain(status));
  Follow(failed ? saving_.BeginFailing(status) : saving_.Begin(status));
}

void JobDriver::EndWithInput() {
  // The servers have gone back, and workers have data again for those steps.
  if (stand_still_.HasLostSteps()) return GoOnAfterDeath();
  context_.out.push_back(Waits{});
  context_.Reach(steps_.step());
  phase_ = Phase::kSaving;
  Follow(saving_.Begin(absl::OkStatus()));
}

void JobDriver::Handle(const TokensClosed& event) {
  if (phase_ == Phase::kSaving) Follow(saving_.OnTokensClosed(event));
}

void JobDriver::Handle(const SavedChecked& event) {
  if (phase_ == Phase::kSaving) Follow(saving_.OnSavedChecked(event));
}

void JobDriver::Handle(const SnapshotBegun& event) {
  const bool last = saving_.writes();
  checkpoints_.OnBegun(event, /*quiet=*/last, context_.now, context_.out);
  if (phase_ == Phase::kTraining) training_.OnCopied();
  if (phase_ == Phase::kSaving) Follow(saving_.OnCheckpoint());
}

void JobDriver::Handle(const SnapshotDone& event) {
  checkpoints_.OnDone(event, context_.now, context_.out);
  if (phase_ == Phase::kSaving) Follow(saving_.OnCheckpoint());
}

void JobDriver::Follow(Saving::Turn turn) {
  switch (turn) {
    case Saving::Turn::kGoesOn:
      return;
    case Saving::Turn::kServerAway:
      return BringTogether(Cause::kSaving);
    case Saving::Turn::kEnded:
      return EndSaving(saving_.result());
    case Saving::Turn::kReplaced:
      return GiveWay(saving_.result());
  }
}

void JobDriver::EndSaving(const absl::Status& status) {
  if (!status.ok() || !options_.has_evaluator) return End(status);
  phase_ = Phase::kScoring;
  score_wait_.emplace(steps_.step(), context_.now);
  Score();
}

void JobDriver::Score() {
  if (!score_wait_->GoOn(context_, scored_)) return End(absl::OkStatus());
  deaths_.BuryAfterTraining();
  if (context_.stop.has_value()) End(*context_.stop);
}

void JobDriver::End(const absl::Status& status) {
  context_.out.push_back(CloseSettings{"the job is over", /*over=*/true});
  takes_settings_ = false;
  deaths_.Forget();
  phase_ = Phase::kFarewell;
  farewell_.Begin(status, why_done_);
  SayFarewell();
}

void JobDriver::SayFarewell() {
  if (!farewell_.GoOn()) return;
  phase_ = Phase::kOver;
  context_.out.push_back(Finish{farewell_.ended(), checkpoints_.busy()});
}

void JobDriver::GiveWay(const absl::Status& why) {
  context_.out.push_back(CloseSettings{"the job is over", /*over=*/true});
  takes_settings_ = false;
  phase_ = Phase::kOver;
  // No farewell: the members belong to that chief.
  context_.out.push_back(
      Finish{absl::UnavailableError(
                 absl::StrCat("a newer chief has taken over: ", why.message())),
             checkpoints_.busy()});
}

}  // namespace lockstep::chief
