#include "deploy/cli/spans/job_trace.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>

namespace lockstep::cli {
namespace {

// Each step is committed at ps 0.
std::vector<Span> CommitsOf(const JobTrace& trace) {
  std::vector<Span> commits;
  for (const TaskTrace& task : trace.tasks) {
    if (task.task != "ps 0") continue;
    std::copy_if(
        task.spans.begin(), task.spans.end(), std::back_inserter(commits),
        [](const Span& span) { return span.kind == SpanKind::kCommit; });
  }
  return commits;
}

}  // namespace

void AlignClocks(JobTrace& trace) {
  for (TaskTrace& task : trace.tasks) {
    for (Span& span : task.spans) {
      span.begin += task.clock.offset;
      span.end += task.clock.offset;
    }
    task.clock.offset = 0;
  }
}

void DropLostSteps(JobTrace& trace) {
  std::vector<Span> commits = CommitsOf(trace);
  std::stable_sort(commits.begin(), commits.end(),
                   [](const Span& a, const Span& b) { return a.end < b.end; });
  int64_t newest = -1;
  int64_t lost_until = std::numeric_limits<int64_t>::min();
  for (size_t i = 0; i < commits.size(); ++i) {
    // The span of a commit that was repeated has the same step.
    if (commits[i].step < newest) lost_until = commits[i - 1].end;
    newest = commits[i].step;
  }
  for (TaskTrace& task : trace.tasks) {
    std::erase_if(task.spans, [lost_until](const Span& span) {
      return span.begin < lost_until;
    });
  }
}

int64_t ClockError(const JobTrace& trace) {
  int64_t error = 0;
  for (const TaskTrace& task : trace.tasks) {
    if (task.clock.error < 0) return -1;
    error = std::max(error, task.clock.error);
  }
  return error;
}

StepRange NewestSteps(const JobTrace& trace, int64_t count) {
  int64_t oldest = std::numeric_limits<int64_t>::max();
  int64_t newest = -1;
  for (const Span& span : CommitsOf(trace)) {
    oldest = std::min(oldest, span.step);
    newest = std::max(newest, span.step);
  }
  if (newest < 0) return {};
  // The tasks keep a limited number of spans, so that older steps may be gone.
  return {std::max(oldest, newest + 1 - count), newest + 1};
}

void KeepSteps(const StepRange& range, JobTrace& trace) {
  const auto in_range = [&](const Span& span) {
    return span.step >= range.first && span.step < range.end;
  };
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (!in_range(span)) continue;
      begin = std::min(begin, span.begin);
      end = std::max(end, span.end);
    }
  }
  for (TaskTrace& task : trace.tasks) {
    std::erase_if(task.spans, [&](const Span& span) {
      if (in_range(span)) return false;
      return span.step >= 0 || span.end < begin || span.begin > end;
    });
  }
}

}  // namespace lockstep::cli
