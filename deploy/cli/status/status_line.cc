#include "deploy/cli/status/status_line.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deploy/cli/status/status_text.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

constexpr char kBold[] = "\x1b[1m";
constexpr char kYellow[] = "\x1b[33m";
constexpr char kPlain[] = "\x1b[0m";

struct Segment {
  std::string text;
  const char* colour = nullptr;
};

// The detail of each part of a line.
struct Layout {
  enum class Workers { kNamed, kFull, kShort, kTotal, kNone };
  bool labels = false;
  Workers workers = Workers::kNone;
  int figures = 3;  // 0: none, 1: loss, 2: and accuracy, 3: and speed
};

// The most detailed one first; see StatusLine for the order.
constexpr Layout kLayouts[] = {
    {.labels = true, .workers = Layout::Workers::kNamed},
    {.workers = Layout::Workers::kNamed},
    {.workers = Layout::Workers::kFull},
    {.workers = Layout::Workers::kShort},
    {.workers = Layout::Workers::kTotal},
    {.workers = Layout::Workers::kNone},
    {.workers = Layout::Workers::kNone, .figures = 2},
    {.workers = Layout::Workers::kNone, .figures = 1},
    {.workers = Layout::Workers::kNone, .figures = 0},
};

size_t Columns(const std::vector<Segment>& segments, const Layout& layout) {
  const size_t gap = layout.labels ? 2 : 1;
  size_t columns = 0;
  for (const Segment& segment : segments) {
    columns += cli::Columns(segment.text) + gap;
  }
  return segments.empty() ? 0 : columns - gap;
}

std::string Counts(const WorkerCounts& counts, bool waiting) {
  std::string text = absl::StrCat(counts.accepted, "/", counts.stale);
  if (waiting) {
    absl::StrAppendFormat(&text, "/%.0fs",
                          absl::ToDoubleSeconds(counts.waiting));
  }
  return text;
}

WorkerCounts Total(const std::vector<MemberStatus>& workers) {
  WorkerCounts total;
  for (const MemberStatus& worker : workers) {
    if (!worker.counts.has_value()) continue;
    total.accepted += worker.counts->accepted;
    total.stale += worker.counts->stale;
    total.waiting += worker.counts->waiting;
  }
  return total;
}

// Returns "w12" for "worker 12".
std::string ShortName(const MemberStatus& worker) {
  const size_t space = worker.task.rfind(' ');
  if (space == std::string::npos) return "w";
  return absl::StrCat("w", Printable(worker.task.substr(space + 1)));
}

void AddEachWorker(const std::vector<MemberStatus>& workers,
                   Layout::Workers how, std::vector<Segment>& segments) {
  std::vector<std::string> texts;
  for (const MemberStatus& worker : workers) {
    const std::string counts = Counts(worker.counts.value_or(WorkerCounts()),
                                      how != Layout::Workers::kShort);
    if (how == Layout::Workers::kNamed) {
      segments.push_back({absl::StrCat(ShortName(worker), " ", counts)});
    } else {
      texts.push_back(counts);
    }
  }
  if (!texts.empty()) {
    segments.push_back({absl::StrCat("w ", absl::StrJoin(texts, " "))});
  }
}

void AddWorkers(const JobStatus& status, Layout::Workers how,
                std::vector<Segment>& segments) {
  const std::vector<MemberStatus> workers = WorkersOf(status);
  if (workers.empty() || how == Layout::Workers::kNone) return;
  if (how != Layout::Workers::kTotal) {
    return AddEachWorker(workers, how, segments);
  }
  segments.push_back(
      {absl::StrCat(workers.size(), "w ", Counts(Total(workers), true))});
}

// The first figure of a user's evaluator, or the accuracy.
std::string Score(const Evaluation& evaluation, const char* accuracy,
                  int digits) {
  if (evaluation.figures.empty()) {
    return absl::StrCat(accuracy, " ",
                        FormatFigure(evaluation.accuracy, digits));
  }
  const auto& [name, value] = evaluation.figures.front();
  return absl::StrCat(Printable(name), " ", FormatFigure(value, digits));
}

void AddFigures(const JobStatus& status, const Layout& layout,
                std::vector<Segment>& segments) {
  const int digits = layout.labels ? 4 : 3;
  if (layout.figures >= 1 && status.has_loss()) {
    segments.push_back(
        {absl::StrCat("loss ", FormatFigure(status.loss, digits))});
  }
  if (layout.figures >= 3 && status.examples_per_second > 0 &&
      !status.settings.paused) {
    segments.push_back({absl::StrCat(
        FormatCompact(status.examples_per_second),
        layout.labels ? absl::StrCat(" ", Printable(status.example_unit), "/s")
                      : "/s")});
  }
  if (layout.figures >= 2 && status.evaluation.has_value()) {
    segments.push_back({Score(*status.evaluation,
                              layout.labels ? "accuracy" : "acc", digits)});
  }
}

Segment Restarts(int restarts) {
  return {absl::StrCat(restarts, restarts == 1 ? " restart" : " restarts"),
          kYellow};
}

// Describes, in words, a run that makes no steps.
std::vector<Segment> StateSegments(const JobStatus& status,
                                   const std::optional<WaitStatus>& wait) {
  std::vector<Segment> segments = {
      {std::string(JobStateName(status.state)), kBold}};
  // A job that starts anew has no step to show; one that goes on has.
  if (status.step > 0 || status.state != JobState::kStarting) {
    segments.push_back(
        {absl::StrCat("step ", status.step, "/", status.train_steps)});
  }
  if (!status.reason.empty()) segments.push_back({Printable(status.reason)});
  if (wait.has_value() && !IsFinal(status.state)) {
    segments.push_back({WaitText(*wait), kYellow});
  }
  return segments;
}

std::vector<Segment> TrainingSegments(const JobStatus& status,
                                      const std::optional<WaitStatus>& wait,
                                      std::optional<absl::Duration> eta,
                                      const Layout& layout) {
  const bool paused = status.settings.paused;
  std::vector<Segment> segments;
  if (paused) segments.push_back({std::string(ShownState(status)), kYellow});
  segments.push_back({absl::StrCat(layout.labels ? "step " : "", status.step,
                                   "/", status.train_steps),
                      kBold});
  const bool waits = wait.has_value() && wait->since >= StatusLine::kLongWait;
  if (waits) segments.push_back({WaitText(*wait), kYellow});
  AddFigures(status, layout, segments);
  // While no step is made there is no rate, and the workers' counts stand
  // still.
  if (waits || paused) return segments;
  AddWorkers(status, layout.workers, segments);
  if (eta.has_value()) {
    segments.push_back({absl::StrCat("ETA ", FormatClock(*eta))});
  }
  return segments;
}

// Cuts the text to the width first, then adds colours.
std::string Join(const std::vector<Segment>& segments, size_t gap,
                 size_t columns, bool colour) {
  std::string out;
  size_t left = columns;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i > 0) {
      if (left <= gap) break;
      out.append(gap, ' ');
      left -= gap;
    }
    const std::string text = Clip(segments[i].text, left);
    left -= cli::Columns(text);  // of the screen, which are fewer than bytes
    if (colour && segments[i].colour != nullptr) {
      absl::StrAppend(&out, segments[i].colour, text, kPlain);
    } else {
      absl::StrAppend(&out, text);
    }
  }
  return out;
}

}  // namespace

std::string StatusLine::Format(const JobStatus& status,
                               std::optional<absl::Duration> eta, int restarts,
                               size_t columns) const {
  const std::optional<WaitStatus> wait = LongestWait(status);
  std::vector<Segment> segments;
  if (status.state != JobState::kTraining) {
    segments = StateSegments(status, wait);
    if (restarts > 0) segments.push_back(Restarts(restarts));
    return Join(segments, 2, columns, colour_);
  }
  size_t gap = 1;
  for (const Layout& layout : kLayouts) {
    segments = TrainingSegments(status, wait, eta, layout);
    if (restarts > 0) segments.push_back(Restarts(restarts));
    gap = layout.labels ? 2 : 1;
    if (Columns(segments, layout) <= columns) break;
  }
  return Join(segments, gap, columns, colour_);
}

}  // namespace lockstep::cli
