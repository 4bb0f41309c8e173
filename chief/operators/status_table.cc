#include "chief/operators/status_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

// The rate of steps is measured over this time.
constexpr absl::Duration kRateWindow = absl::Seconds(5);
// The time for which servers are asked for the job's history after training
// began.
constexpr absl::Duration kHistoryWait = absl::Seconds(3);

}  // namespace

absl::Status StatusTable::Describe(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples) {
  MutexLock lock(mutex_);
  if (variables.empty()) {
    return absl::InvalidArgumentError("variables: the model has none");
  }
  if (examples.has_value() && examples_.has_value() &&
      *examples != *examples_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this worker's examples are ", examples->ToString(),
        "; those of the worker that came first are ", examples_->ToString(),
        ": give all workers the same data, or set data.classes"));
  }
  // The first description is the model.
  if (variables_.empty()) variables_ = variables;
  if (variables == variables_) {
    if (examples.has_value()) examples_ = examples;
    return absl::OkStatus();
  }
  // Names the first difference.
  const size_t common = std::min(variables.size(), variables_.size());
  for (size_t i = 0; i < common; ++i) {
    if (variables[i] == variables_[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("variables[", i, "] is ", VariableString(variables[i]),
                     " on this worker, and ", VariableString(variables_[i]),
                     " on the one that came first; start all workers alike"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", variables.size(), " variables here and ",
                   variables_.size(),
                   " on the worker that came first; start all workers alike"));
}

std::vector<VariableSpec> StatusTable::variables() const {
  MutexLock lock(mutex_);
  return variables_;
}

std::optional<ExampleShape> StatusTable::examples() const {
  MutexLock lock(mutex_);
  return examples_;
}

void StatusTable::PublishPlan(const Plan& plan) {
  MutexLock lock(mutex_);
  plan_ = plan;
}

std::optional<Plan> StatusTable::plan() const {
  MutexLock lock(mutex_);
  return plan_;
}

void StatusTable::SetEpoch(uint64_t epoch) {
  MutexLock lock(mutex_);
  view_.epoch = epoch;
}

// A job that goes back, to a checkpoint for example, has no rate across that.
void StatusTable::Reach(int64_t global_step, absl::Time now) {
  view_.global_step = global_step;
  if (!recent_.empty() && global_step < recent_.back().second) recent_.clear();
  recent_.emplace_back(now, global_step);
}

void StatusTable::StartTraining(int64_t global_step, absl::Time now) {
  MutexLock lock(mutex_);
  const bool first = !std::exchange(started_, now).has_value();
  paused_ = absl::ZeroDuration();
  Reach(global_step, now);
  if (first) DropScoresBeyond(NewestStep());
  if (!IsFinal(view_.state)) view_.state = JobState::kTraining;
}

// recent_ stays: the job has stood still since its last step.
void StatusTable::GoBack(int64_t global_step) {
  MutexLock lock(mutex_);
  lost_step_ = std::max(lost_step_, NewestStep());
  view_.global_step = global_step;
  if (view_.last_checkpoint_step > global_step) view_.last_checkpoint_step = -1;
  DropScoresBeyond(global_step);
}

// Such a score would pass for newer than those of the checkpoints to come, or
// for that of a checkpoint of the same step.
void StatusTable::DropScoresBeyond(int64_t step) {
  const auto drop = [step](std::optional<Evaluation>& score) {
    if (score.has_value() && score->step > step) score.reset();
  };
  drop(reported_);
  drop(view_.evaluation);
  if (!view_.evaluation.has_value()) view_.evaluation = reported_;
}

void StatusTable::Stepped(int64_t global_step, absl::Time now) {
  MutexLock lock(mutex_);
  Reach(global_step, now);
  for (Death& death : view_.deaths) {
    // The first step after a death ends its standstill.
    if (!death.stood_still.has_value()) {
      death.stood_still =
          now - death.still_since - (PausedUntil(now) - death.paused_before);
    }
  }
  // At least two steps stay, for the rate of a job with slow steps.
  while (recent_.size() > 2 && now - recent_.front().first > kRateWindow) {
    recent_.pop_front();
  }
}

void StatusTable::Checkpointed(int64_t step, absl::Time at) {
  MutexLock lock(mutex_);
  view_.last_checkpoint_at = at;
  view_.last_checkpoint_step = step;
  view_.checkpoint_trouble.clear();
}

void StatusTable::CheckpointFailed(const std::string& why) {
  MutexLock lock(mutex_);
  view_.checkpoint_trouble = why;
}

void StatusTable::SetScoreTrouble(const std::string& why) {
  MutexLock lock(mutex_);
  view_.score_trouble = why;
}

void StatusTable::SetSettings(const RunSettings& settings, absl::Time now) {
  MutexLock lock(mutex_);
  if (paused_since_.has_value() && !settings.paused) {
    paused_ = PausedUntil(now);
    paused_since_.reset();
    // The rate is one of steps without a pause in between.
    recent_.clear();
    if (started_.has_value()) Reach(view_.global_step, now);
  } else if (!paused_since_.has_value() && settings.paused) {
    paused_since_ = now;
  }
  view_.settings = settings;
}

absl::Duration StatusTable::PausedUntil(absl::Time end) const {
  if (!started_.has_value() || !paused_since_.has_value()) return paused_;
  return paused_ + std::max(end - std::max(*paused_since_, *started_),
                            absl::ZeroDuration());
}

void StatusTable::SetLosses(const Losses& losses) {
  MutexLock lock(mutex_);
  view_.losses = losses;
}

void StatusTable::Died(Death death) {
  MutexLock lock(mutex_);
  ++view_.death_counts[death.task];
  // The job stands still since its last step, not since the death was found; a
  // paused one would stand still without it.
  const bool stepped = !recent_.empty() && !paused_since_.has_value();
  death.still_since = stepped ? recent_.back().first : death.at;
  death.paused_before = PausedUntil(death.still_since);
  if (view_.deaths.size() == kDeaths) view_.deaths.erase(view_.deaths.begin());
  view_.deaths.push_back(std::move(death));
}

void StatusTable::Redone(const std::string& what) {
  MutexLock lock(mutex_);
  for (Death& death : view_.deaths) {
    // The deaths since the last step caused it together.
    if (!death.stood_still.has_value() && death.redone.empty()) {
      death.redone = what;
    }
  }
}

void StatusTable::Notify(const std::string& text, absl::Time now) {
  MutexLock lock(mutex_);
  std::vector<Notice>& notices = view_.notices;
  // The time, so that the numbers of a chief that is started again are larger.
  int64_t number = absl::ToUnixMicros(now);
  if (!notices.empty()) number = std::max(number, notices.back().number + 1);
  if (notices.size() == kNotices) notices.erase(notices.begin());
  notices.push_back({number, text});
}

void StatusTable::SetWaits(std::vector<Wait> waits) {
  MutexLock lock(mutex_);
  view_.waits = std::move(waits);
}

void StatusTable::SetState(JobState state, const std::string& reason,
                           absl::Time now, bool hold) {
  MutexLock lock(mutex_);
  // Members may have read the final state already.
  if (IsFinal(view_.state)) return;
  view_.hold = hold;
  view_.state = state;
  view_.since = now;
  view_.reason = reason;
  if (state == JobState::kTraining) {
    // The last steps were lost before they were saved, and are made again.
    ended_.reset();
  } else if (started_.has_value() && !ended_.has_value()) {
    ended_ = now;
  }
}

void StatusTable::SetStateSaved(bool saved) {
  MutexLock lock(mutex_);
  view_.state_saved = saved;
}

int64_t StatusTable::NewestStep() const {
  return std::max(view_.global_step, view_.last_checkpoint_step);
}

absl::Status StatusTable::Evaluated(const Evaluation& evaluation) {
  MutexLock lock(mutex_);
  const bool beyond = started_.has_value() && evaluation.step > NewestStep();
  // The evaluator was not done with it when the job went back.
  if (beyond && evaluation.step <= lost_step_) return absl::OkStatus();
  if (evaluation.step < 0 || beyond) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global_step is ", evaluation.step, ", but the job has reached step ",
        NewestStep(), "; give the step of the checkpoint that was scored"));
  }
  reported_ = evaluation;
  if (view_.evaluation.has_value() &&
      view_.evaluation->step > evaluation.step) {
    return absl::OkStatus();
  }
  view_.evaluation = evaluation;
  return absl::OkStatus();
}

int64_t StatusTable::scored_step() const {
  MutexLock lock(mutex_);
  return view_.evaluation.has_value() ? view_.evaluation->step : -1;
}

StatusTable::View StatusTable::Get(absl::Time now) const {
  MutexLock lock(mutex_);
  View view = view_;
  if (started_.has_value()) {
    const absl::Time end = ended_.value_or(now);
    view.training_time = end - *started_ - PausedUntil(end);
  }
  if (earlier_.has_value()) {
    view.training_time += earlier_->training_time;
    view.losses.recoveries += earlier_->losses.recoveries;
    view.losses.steps_redone += earlier_->losses.steps_redone;
    view.losses.steps_repeated += earlier_->losses.steps_repeated;
    view.losses.stood_still += earlier_->losses.stood_still;
  }
  if (recent_.size() >= 2 && !paused_since_.has_value()) {
    // After the end of training the rate must not fall with the time.
    const absl::Time end = ended_.value_or(now);
    const absl::Duration window =
        std::max(end - recent_.front().first, absl::Milliseconds(1));
    view.steps_per_second =
        static_cast<double>(recent_.back().second - recent_.front().second) /
        absl::ToDoubleSeconds(window);
  }
  return view;
}

StatusTable::History StatusTable::GetHistory(absl::Time now) const {
  View view = Get(now);
  MutexLock lock(mutex_);
  return {.training_time = view.training_time,
          .deaths = std::move(view.deaths),
          .losses = view.losses,
          .training = started_.has_value() && !ended_.has_value() &&
                      !paused_since_.has_value()};
}

void StatusTable::Restore(const History& history) {
  MutexLock lock(mutex_);
  // Several servers send the same history.
  if (earlier_.has_value()) return;
  earlier_ = history;
  std::vector<Death>& deaths = view_.deaths;
  deaths.insert(deaths.begin(), history.deaths.begin(), history.deaths.end());
  if (deaths.size() > kDeaths) {
    deaths.erase(deaths.begin(), deaths.end() - kDeaths);
  }
}

bool StatusTable::WantsHistory(absl::Time now) const {
  MutexLock lock(mutex_);
  return !earlier_.has_value() &&
         (!started_.has_value() || now - *started_ < kHistoryWait);
}

}  // namespace lockstep::chief
