#include "chief/job/saving.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/passing_error.h"

namespace lockstep::chief {
namespace {

// Between attempts; the pause doubles.
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(5);
// The time for which a job that was asked to stop tries: less than its
// processes have to end.
constexpr absl::Duration kStopPatience = absl::Seconds(5);

}  // namespace

Saving::Turn Saving::Begin(const absl::Status& trained) {
  trained_ = trained;
  began_ = context_.now;
  last_step_ = steps_.step();
  pause_ = kFirstPause;
  steps_.RestartTime(context_.now);
  Try();
  return Turn::kGoesOn;
}

Saving::Turn Saving::BeginFailing(const absl::Status& failure) {
  // Other failures may come from the values themselves, for example if the
  // learning rate was too large: they are not worth a checkpoint.
  const bool worth =
      absl::IsResourceExhausted(failure) || absl::IsDeadlineExceeded(failure);
  if (!worth || context_.job.checkpoint.directory.empty()) return End(failure);
  context_.servers.EndSteps();
  const bool away = !context_.servers.Away().empty();
  if (away &&
      context_.servers.AllGivenUpAt(context_.now) == absl::InfiniteFuture()) {
    return End(failure);
  }
  failing_ = failure;
  began_ = context_.now;
  if (away) return Turn::kServerAway;
  last_.Try(steps_.step(), steps_.committed_attempt(), steps_.round(),
            context_.out);
  return Turn::kGoesOn;
}

Saving::Turn Saving::TrainedAgain(const absl::Status& trained) {
  if (!trained.ok() && !absl::IsCancelled(trained)) return GiveUp(trained);
  if (!trained.ok()) trained_ = trained;
  // The time of the lost steps is no wait of the end.
  began_ = context_.now;
  pause_ = kFirstPause;
  Try();
  return Turn::kGoesOn;
}

void Saving::Try() {
  context_.out.push_back(StateReached{JobState::kFinishing});
  pauses_ = false;
  last_.Try(steps_.step(), steps_.committed_attempt(), steps_.round(),
            context_.out);
}

Saving::Turn Saving::OnTokensClosed(const TokensClosed& event) {
  if (absl::IsAborted(event.status)) {
    result_ = event.status;
    return Turn::kReplaced;
  }
  return Tried(last_.OnTokensClosed(event, context_.out));
}

Saving::Turn Saving::OnSavedChecked(const SavedChecked& event) {
  return Tried(last_.OnSavedChecked(event, context_.out));
}

Saving::Turn Saving::OnCheckpoint() {
  return Tried(last_.OnCheckpoint(context_.out));
}

Saving::Turn Saving::Tried(const std::optional<absl::Status>& saved) {
  if (!saved.has_value()) return Turn::kGoesOn;
  if (failing_.has_value()) return TriedBeforeFailing(*saved);
  if (saved->ok()) {
    context_.out.push_back(
        StateSaved{!context_.job.checkpoint.directory.empty()});
    // A stop that holds may have come since.
    return End(trained_->ok() ? *trained_ : context_.stop.value_or(*trained_));
  }
  // In compatible mode the step after the last one has begun to change values
  // in place, and nothing brings them back.
  if (absl::IsDataLoss(*saved)) return GiveUp(*saved);
  const absl::Duration max_wait = context_.job.max_wait;
  const absl::Duration patience =
      context_.stop.has_value() ? std::min(max_wait, kStopPatience) : max_wait;
  // A call to a mirror that hangs may take longer than that, but an elastic job
  // does without the mirror in the next attempt.
  const bool does_without =
      context_.servers.may_change() && deaths_.server_away();
  if (context_.now - began_ >= patience && !does_without) return GiveUp(*saved);
  Warn(context_.out, absl::StrCat("the end waits: ", saved->message()));
  saved_ = *saved;
  again_ = context_.now + pause_;
  pauses_ = true;
  return Pause();
}

Saving::Turn Saving::TriedBeforeFailing(const absl::Status& saved) {
  if (saved.ok()) {
    Info(context_.out,
         absl::StrCat("the job is about to fail; a checkpoint holds step ",
                      steps_.step()));
    // Only a checkpoint can be restored with a larger table; state files
    // cannot, so they need not stay.
    context_.out.push_back(StateSaved{absl::IsResourceExhausted(*failing_)});
  } else {
    Error(context_.out,
          absl::StrCat("no checkpoint of step ", steps_.step(),
                       " before the job fails: ", saved.message()));
  }
  return End(*failing_);
}

Saving::Turn Saving::OnTick() {
  if (pauses_) return Pause();
  // A volume may hang, and members die meanwhile.
  deaths_.BuryAfterTraining();
  if (!checkpoints_.busy()) return Turn::kGoesOn;
  checkpoints_.ReportWait("the end", began_, context_.now, context_.out);
  const absl::Status late = checkpoints_.CheckNotOverdue(context_.now);
  if (late.ok()) return Turn::kGoesOn;
  if (failing_.has_value()) return TriedBeforeFailing(late);
  // The end of a job that is done waits as long as its volume takes.
  return context_.stop.has_value() ? GiveUp(late) : Turn::kGoesOn;
}

Saving::Turn Saving::Pause() {
  if (context_.now < again_ && !deaths_.server_away()) {
    context_.out.push_back(
        Waits{{{"the end",
                absl::StrCat("the checkpoint of step ", steps_.step(),
                             ", which cannot be written: ", saved_.message()),
                began_}}});
    deaths_.BuryAfterTraining();
    return Turn::kGoesOn;
  }
  context_.out.push_back(Waits{});
  pause_ = std::min(2 * pause_, kLongestPause);
  // A single server may have committed granted steps that this chief does not
  // know of: a round learns its step.
  const bool elsewhere = absl::IsFailedPrecondition(saved_);
  if (IsPassing(saved_) || elsewhere || deaths_.server_away()) {
    return Turn::kServerAway;
  }
  Try();
  return Turn::kGoesOn;
}

Saving::Turn Saving::GiveUp(const absl::Status& why) {
  if (failing_.has_value()) return TriedBeforeFailing(why);
  // The state of a server that was updated in place may be half a step.
  const std::string next =
      context_.job.mode == SyncMode::kCompatible
          ? "the job goes on from the checkpoint before when it is started "
            "again"
          : absl::StrCat("where --state_dir was given, servers keep step ",
                         steps_.step(),
                         " in it, and the job goes on from there when it is "
                         "started again");
  return End(absl::Status(
      why.code(), absl::StrCat("the last checkpoint could not be written: ",
                               why.message(), "; ", next)));
}

}  // namespace lockstep::chief
