#include "chief/backups/backup_tuner.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/backups/arrival_times.h"
#include "common/text/duration_text.h"

namespace lockstep::chief {
namespace {

// The overhead of a step is at most this many times its passes: a longer step
// stood still for some other reason.
constexpr double kMostOverhead = 4;
// The overhead approaches the measured one by these fractions. It rises slowly:
// if passes have just become slower, their distributions do not show it yet.
constexpr double kFall = 0.5;
constexpr double kRise = 0.05;
// The weight of the newest interval between losses; the shortest interval that
// a single loss can mean, and the shortest of all, in seconds.
constexpr double kNewInterval = 0.4;
constexpr double kFirstInterval = 30;
constexpr double kShortestInterval = 0.1;

double FastestMean(const std::vector<PassDistribution>& workers) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const PassDistribution& worker : workers) {
    double mean = 0;
    for (const PassMass& one : worker) mean += one.mass * SecondsOf(one.bin);
    fastest = std::min(fastest, mean);
  }
  return fastest;
}

std::string Milliseconds(double seconds) {
  return absl::StrFormat("%.3g ms", seconds * 1e3);
}

}  // namespace

double BackupTuner::Costs::StepSeconds(int replicas) const {
  const int missing = std::clamp<int>(present - replicas, 0,
                                      static_cast<int>(arrivals.size()) - 1);
  const double seconds = arrivals[static_cast<size_t>(missing)] + overhead;
  return missing == 0 ? seconds * (1 + losses) : seconds;
}

int BackupTuner::Costs::Best() const {
  int best = present;
  for (int replicas = present; replicas >= Fewest(); --replicas) {
    if (PerGradient(replicas) < PerGradient(best)) best = replicas;
  }
  return best;
}

void BackupTuner::CountLosses(absl::Time now) {
  if (last_loss_ == absl::InfinitePast()) last_loss_ = now;
  for (; losses_ < workers_.losses(); ++losses_) {
    const double interval = absl::ToDoubleSeconds(now - last_loss_);
    loss_interval_ =
        loss_interval_ > 0
            ? loss_interval_ + kNewInterval * (interval - loss_interval_)
            : std::max(interval, kFirstInterval);
    last_loss_ = now;
  }
}

double BackupTuner::LossInterval(absl::Time now) const {
  if (loss_interval_ <= 0) return std::numeric_limits<double>::infinity();
  // A long time without losses shows that they have become rarer.
  return std::max({loss_interval_, absl::ToDoubleSeconds(now - last_loss_),
                   kShortestInterval});
}

BackupTuner::Costs BackupTuner::MakeCosts(const std::vector<int>& present,
                                          PassTimes::Memory memory,
                                          absl::Time now) const {
  Costs costs;
  costs.present = static_cast<int>(present.size());
  const std::vector<PassDistribution> passes =
      workers_.Distributions(present, memory);
  const int most = std::min(kMostBackups, costs.present - 1);
  // A step continues without the missing gradients `patience` after an arrival.
  costs.arrivals = ExpectedArrivals(
      passes, most, FastestMean(passes) + absl::ToDoubleSeconds(patience_));
  costs.overhead = overhead_.value_or(0);
  costs.losses =
      kLossCost * absl::ToDoubleSeconds(patience_) / LossInterval(now);
  return costs;
}

void BackupTuner::Measure(Costs& costs, int replicas, double step_seconds) {
  Costs without = costs;
  without.overhead = without.losses = 0;
  const double passes_take = without.StepSeconds(replicas);
  const double measured =
      std::clamp(step_seconds - passes_take, 0.0, kMostOverhead * passes_take);
  if (!overhead_.has_value()) overhead_ = measured;
  const double difference = measured - *overhead_;
  *overhead_ += difference * (difference < 0 ? kFall : kRise);
  costs.overhead = *overhead_;
}

std::optional<BackupTuner::Change> BackupTuner::AtBoundary(
    int64_t step, int replicas, const std::vector<int>& workers,
    absl::Time now) {
  CountLosses(now);
  // The first boundary, or the job has gone back: no step was measured.
  if (!since_.has_value() || step < since_->step) {
    since_ = Mark{step, now};
    // The steps of a trial are made again, too.
    if (trial_.has_value()) {
      trial_->until = std::min(trial_->until, step + kTrialSteps);
    }
    if (changed_ == absl::InfinitePast()) changed_ = now;
    return std::nullopt;
  }
  const bool tried = trial_.has_value() && step >= trial_->until;
  const int64_t made = step - since_->step;
  // A decision for many workers takes long, so it is made less often.
  const absl::Duration pause = absl::Milliseconds(workers.size());
  if (!heard_ || (made < kEverySteps && !tried) || now - since_->at < pause) {
    return std::nullopt;
  }
  workers_.Keep(workers);
  const std::vector<int> present = workers_.Present(workers);
  if (present.empty() || !workers_.AreKnown(present)) return std::nullopt;
  heard_ = false;
  step_seconds_ =
      absl::ToDoubleSeconds(now - since_->at) / static_cast<double>(made);
  since_ = Mark{step, now};
  // A trial finds out whether old times still hold, so it is judged by fresh
  // ones.
  Costs costs = MakeCosts(
      present, tried ? PassTimes::Memory::kFresh : PassTimes::Memory::kAll,
      now);
  Measure(costs, replicas, step_seconds_);
  return Decide(costs, step, replicas, present, now);
}

std::optional<BackupTuner::Change> BackupTuner::Decide(
    const Costs& costs, int64_t step, int replicas,
    const std::vector<int>& workers, absl::Time now) {
  if (trial_.has_value()) return EndTrial(costs, step, replicas, workers, now);
  const int best = costs.Best();
  const bool possible = replicas <= costs.present && replicas >= costs.Fewest();
  if (possible &&
      costs.PerGradient(best) >= (1 - kGain) * costs.PerGradient(replicas)) {
    confirmed_ = false;
    return MaybeTry(costs, step, replicas, workers, now);
  }
  // Twice in a row, so that one unusual measurement changes nothing.
  if (!confirmed_ && possible) {
    confirmed_ = true;
    return std::nullopt;
  }
  return To(costs, step, replicas, best, workers, now);
}

std::optional<BackupTuner::Change> BackupTuner::EndTrial(
    const Costs& costs, int64_t step, int replicas,
    const std::vector<int>& workers, absl::Time now) {
  if (step < trial_->until) return std::nullopt;
  // Workers may have gone during the trial.
  const int before = std::min(trial_->before, costs.present);
  trial_.reset();
  // Where a worker leaves an elastic job, the number may be that of before
  // already.
  if (replicas == before) return std::nullopt;
  // The number that was tried must be better to stay. The trial says nothing
  // about larger numbers.
  if (replicas <= costs.present &&
      costs.PerGradient(replicas) < (1 - kGain) * costs.PerGradient(before)) {
    return std::nullopt;
  }
  return To(costs, step, replicas, before, workers, now);
}

std::optional<BackupTuner::Change> BackupTuner::MaybeTry(
    const Costs& costs, int64_t step, int replicas,
    const std::vector<int>& workers, absl::Time now) {
  if (replicas >= costs.present) return std::nullopt;
  const Costs hopeful = MakeCosts(workers, PassTimes::Memory::kFresh, now);
  const int best = hopeful.Best();
  if (best <= replicas || hopeful.PerGradient(best) >=
                              (1 - kGain) * hopeful.PerGradient(replicas)) {
    return std::nullopt;
  }
  const double may_cost =
      kTrialCost * absl::ToDoubleSeconds(now - changed_) / kTrialSteps;
  // The best number if a trial of it is affordable, else one more gradient.
  for (const int tried : {best, replicas + 1}) {
    const double cost =
        tried * (costs.PerGradient(tried) - costs.PerGradient(replicas));
    if (cost > may_cost) continue;
    trial_ = Trial{step + kTrialSteps, replicas};
    Change change = To(costs, step, replicas, tried, workers, now);
    change.why = absl::StrCat("a trial for ", kTrialSteps,
                              " steps, since slow workers may have become "
                              "faster");
    return change;
  }
  return std::nullopt;
}

BackupTuner::Change BackupTuner::To(const Costs& costs, int64_t step, int from,
                                    int replicas,
                                    const std::vector<int>& workers,
                                    absl::Time now) {
  confirmed_ = false;
  changed_ = now;
  since_ = Mark{step, now};
  step_seconds_ = 0;
  const double next = costs.PerGradient(replicas);
  std::string why = absl::StrCat(workers_.Describe(workers), "; a gradient is ",
                                 "expected every ", Milliseconds(next));
  if (from <= costs.present) {
    const double before = costs.PerGradient(from);
    absl::StrAppend(&why, " instead of ", Milliseconds(before),
                    absl::StrFormat(" (%+.0f %%)", 100 * (next / before - 1)));
  }
  return {replicas, std::move(why)};
}

std::optional<BackupTuner::Change> BackupTuner::WhileWaiting(int64_t step,
                                                             int replicas,
                                                             int arrived,
                                                             absl::Time now) {
  // Each arrival shows that the step still moves.
  if (step != waiting_step_ || arrived != arrived_) {
    waiting_step_ = step;
    arrived_ = arrived;
    last_arrival_ = now;
  }
  const absl::Duration waited = now - last_arrival_;
  // Also longer than a usual step, in jobs with slow steps.
  if (arrived < 1 || arrived >= replicas || waited < patience_ ||
      waited < absl::Seconds(step_seconds_)) {
    return std::nullopt;
  }
  trial_.reset();
  confirmed_ = false;
  changed_ = now;
  since_.reset();
  return Change{
      arrived,
      absl::StrCat("no gradient of the other ", replicas - arrived,
                   " came for ", DurationText(waited, absl::Milliseconds(10)))};
}

}  // namespace lockstep::chief
