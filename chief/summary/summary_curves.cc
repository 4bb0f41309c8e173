#include "chief/summary/summary_curves.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep::chief {
namespace {

// True if the job's value is the sum of the workers' values, and not their
// mean.
bool IsSummed(const std::string& name) {
  return name == "examples_per_second" ||
         name == "passes_accepted_per_second" ||
         name == "passes_stale_per_second";
}

// The curves that the chief makes, and those that its page adds.
constexpr std::array<absl::string_view, 10> kOwnCurves = {
    "loss",
    "learning_rate",
    "steps_per_second",
    "step_seconds",
    "step_seconds_median",
    "step_seconds_p99",
    "examples_per_second",
    "passes_accepted_per_second",
    "passes_stale_per_second",
    "waiting_fraction"};

// The curve of a figure of a user's program, which may have any name.
std::string CurveOf(const std::string& figure) {
  const bool taken = std::find(kOwnCurves.begin(), kOwnCurves.end(), figure) !=
                         kOwnCurves.end() ||
                     absl::StartsWith(figure, "evaluator/");
  return taken ? absl::StrCat("program/", figure) : figure;
}

// A worker that leaves reports its last passes with that.
absl::Time ReportedAt(const MembershipTable::Member& member) {
  return member.state == MembershipTable::State::kLeft ? member.since
                                                       : member.last_heartbeat;
}

std::vector<NamedFigure> JobValues(const std::vector<SummaryPoints>& workers) {
  std::vector<NamedFigure> sums;  // in the order of the first worker's
  std::map<std::string, std::pair<size_t, int>> places;  // and how many
  for (const SummaryPoints& worker : workers) {
    for (const NamedFigure& figure : worker.values) {
      auto [place, is_new] = places.try_emplace(figure.name, sums.size(), 0);
      if (is_new) sums.push_back({figure.name, 0});
      sums[place->second.first].value += figure.value;
      ++place->second.second;
    }
  }
  for (NamedFigure& sum : sums) {
    if (!IsSummed(sum.name)) sum.value /= places[sum.name].second;
  }
  return sums;
}

SummaryPoints ScoreOf(const StatusTable::Evaluation& score) {
  SummaryPoints points{"evaluator", score.step, score.figures};
  if (!points.values.empty()) return points;
  points.values = {{"loss", score.loss}, {"accuracy", score.accuracy}};
  if (score.auc.has_value()) points.values.push_back({"auc", *score.auc});
  return points;
}

}  // namespace

void SummaryCurves::See(const MembershipTable::Member& member, absl::Time now,
                        Seen& seen) {
  const absl::Time at = ReportedAt(member);
  const absl::Duration covered = at - seen.at;
  // The counts of another process begin at 0 again, so there is no rate.
  if (seen.incarnation != member.incarnation) {
    seen = {member.incarnation, at, member.progress};
    return;
  }
  if (covered <= absl::ZeroDuration()) {
    seen.progress = member.progress;
    if (now - at <= 2 * seen.covered) return;
    for (NamedFigure& rate : seen.rates) rate.value = 0;
    return;
  }
  const Progress& before = seen.progress;
  const Progress& after = member.progress;
  const double seconds = absl::ToDoubleSeconds(covered);
  const auto rate = [seconds](int64_t from, int64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  std::vector<NamedFigure> rates = {
      {"examples_per_second", rate(before.examples, after.examples)},
      {"passes_accepted_per_second", rate(before.accepted, after.accepted)},
      {"passes_stale_per_second", rate(before.stale, after.stale)},
      {"waiting_fraction",
       absl::ToDoubleSeconds(after.waiting - before.waiting) / seconds}};
  seen = {member.incarnation, at, after, covered, std::move(rates)};
}

std::vector<SummaryPoints> SummaryCurves::AddWorkers(
    const SummarySample& sample) {
  std::vector<SummaryPoints> runs;
  for (const MembershipTable::Member& member : sample.members) {
    const Progress& now = member.progress;
    if (member.task.type != TaskType::kWorker || now.passes == 0) continue;
    Seen& seen = seen_[member.task.index];
    // A worker that has left has reported its last passes with that.
    const bool is_new = member.state == MembershipTable::State::kLeft &&
                        (seen.incarnation != member.incarnation ||
                         seen.progress.passes != now.passes);
    if (member.state != MembershipTable::State::kAlive && !is_new) continue;
    SummaryPoints points{
        absl::StrCat("worker_", member.task.index), sample.job.global_step, {}};
    // It would hide the others' in the mean.
    if (now.HasLoss()) points.values.push_back({"loss", now.loss});
    See(member, sample.now, seen);
    points.values.insert(points.values.end(), seen.rates.begin(),
                         seen.rates.end());
    for (const NamedFigure& figure : now.figures) {
      points.values.push_back({CurveOf(figure.name), figure.value});
    }
    runs.push_back(std::move(points));
  }
  return runs;
}

std::vector<SummaryPoints> SummaryCurves::Add(const SummarySample& sample) {
  std::vector<SummaryPoints> runs;
  const StatusTable::View& job = sample.job;
  // Several points at one step would overwrite each other.
  if (step_ != job.global_step) {
    step_ = job.global_step;
    runs = AddWorkers(sample);
    SummaryPoints points{"", job.global_step, JobValues(runs)};
    points.values.push_back({"learning_rate", sample.learning_rate});
    if (job.steps_per_second > 0) {
      points.values.push_back({"steps_per_second", job.steps_per_second});
      points.values.push_back({"step_seconds", 1 / job.steps_per_second});
    }
    runs.push_back(std::move(points));
  }
  const int64_t scored = job.evaluation.has_value() ? job.evaluation->step : -1;
  if (std::exchange(scored_, scored) != scored && scored >= 0) {
    runs.push_back(ScoreOf(*job.evaluation));
  }
  return runs;
}

}  // namespace lockstep::chief
