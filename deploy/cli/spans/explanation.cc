#include "deploy/cli/spans/explanation.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "deploy/cli/spans/advice.h"

namespace lockstep::cli {
namespace {

void CountTasks(const JobTrace& trace, Explanation& out) {
  for (const TaskTrace& task : trace.tasks) {
    if (absl::StartsWith(task.task, "worker ")) ++out.workers;
    if (absl::StartsWith(task.task, "ps ")) ++out.servers;
  }
  out.silent = trace.silent;
  out.clock_error = ClockError(trace);
}

// Deaths from a little before the steps on: a death shows in the step that
// waited for it, and may have been noticed late.
void CountDeaths(const JobTrace& trace, int64_t begin, int64_t end,
                 Explanation& out) {
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (span.kind != SpanKind::kDeath) continue;
      if (span.end >= begin && span.begin <= end) ++out.deaths[span.peer];
    }
  }
}

bool SharesWork(const JobTrace& trace) {
  // Among jobs with servers only those have no backups. Their workers may hand
  // no spans in.
  if (trace.limits.no_backups && !trace.limits.no_servers) return true;
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (span.kind == SpanKind::kForward && span.part >= 0) return true;
    }
  }
  return false;
}

void Sum(const std::vector<StepPath>& paths, Explanation& out) {
  int64_t total = 0;
  PathTimes sums{};
  int64_t lateness = 0;
  std::map<int, int64_t> of_worker;
  for (const StepPath& path : paths) {
    total += path.duration();
    lateness += path.lateness;
    of_worker[path.worker] += path.lateness;
    ++out.last[path.worker];
    for (int part = 0; part < kPathParts; ++part) {
      sums[part] += path.times[part];
    }
  }
  // Above 0, because each path has a duration.
  const auto whole = static_cast<double>(total);
  for (int part = 0; part < kPathParts; ++part) {
    out.shares[part] = static_cast<double>(sums[part]) / whole;
  }
  out.waiting = static_cast<double>(lateness) / whole;
  for (const auto& [worker, time] : of_worker) {
    out.waiting_for[worker] = static_cast<double>(time) / whole;
  }
}

}  // namespace

absl::StatusOr<Explanation> Explain(JobTrace trace, int64_t steps) {
  AlignClocks(trace);
  DropLostSteps(trace);
  // A path begins with the commit of the step before, and its worker may be at
  // the next one while its gradients are on their way.
  const StepRange range = NewestSteps(trace, steps + 1);
  KeepSteps({range.first, range.end + 1}, trace);
  std::vector<StepPath> paths = StepPaths(trace);
  if (paths.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the spans show no whole step: ",
                     trace.silent.empty()
                         ? "the job has made too few steps; try again later"
                         : absl::StrCat("no spans came from ",
                                        absl::StrJoin(trace.silent, ", "))));
  }
  Explanation out;
  CountTasks(trace, out);
  out.shared_work = SharesWork(trace);
  out.limits = trace.limits;
  out.steps = static_cast<int>(paths.size());
  out.first_step = paths.front().step + 1;
  out.last_step = paths.back().step + 1;
  CountDeaths(trace, paths.front().begin, paths.back().end, out);
  Sum(paths, out);
  out.advice = AdviceFor(trace, paths, out);
  const auto shorter = [](const StepPath& a, const StepPath& b) {
    return a.duration() < b.duration();
  };
  const auto middle = paths.begin() + static_cast<int64_t>(paths.size() / 2);
  // Last, because it changes the order of the paths.
  std::nth_element(paths.begin(), middle, paths.end(), shorter);
  out.median = *middle;
  out.slowest = *std::max_element(paths.begin(), paths.end(), shorter);
  return out;
}

}  // namespace lockstep::cli
