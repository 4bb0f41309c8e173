#include "deploy/cli/spans/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

// Spans of one group may overlap those of another, so each has its own rows.
const char* GroupOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kReadData:
      return "data";
    case SpanKind::kReceive:
      return "receive";
    case SpanKind::kUpdate:
      return "update";
    case SpanKind::kTake:
      return "take";
    case SpanKind::kCheckpointCopy:
    case SpanKind::kCheckpointWrite:
      return "checkpoint";
    case SpanKind::kDeath:
      return "deaths";
    default:
      return "steps";
  }
}

Json NameEvent(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", pid},
          {"tid", tid},
          {"args", {{"name", name}}}};
}

Json SpanEvent(const Span& span, const char* group, int pid, int tid,
               int64_t zero) {
  Json args = Json::object();
  // People count steps from 1, spans the committed ones before.
  if (span.step >= 0) args["step"] = span.step + 1;
  if (span.attempt > 0) args["attempt"] = span.attempt;
  if (span.part >= 0) {
    args[span.kind == SpanKind::kForward ? "micro_batch" : "part"] = span.part;
  }
  if (span.peer >= 0) {
    args[span.kind == SpanKind::kTake ? "ps" : "worker"] = span.peer;
  }
  if (span.kind == SpanKind::kReceive) {
    args["shared_memory"] = (span.flags & Span::kShared) != 0;
    args["bfloat16"] = (span.flags & Span::kBFloat16) != 0;
  }
  return {{"ph", "X"},
          {"name", std::string(SpanName(span.kind))},
          {"cat", group},
          {"pid", pid},
          {"tid", tid},
          // Large times would lose their nanoseconds in a double.
          {"ts", static_cast<double>(span.begin - zero) / 1e3},
          {"dur", static_cast<double>(span.end - span.begin) / 1e3},
          {"args", std::move(args)}};
}

// Adds a task, whose rows are numbered from 1: of each group as many as it has
// spans at a time.
void AddTask(const TaskTrace& task, int pid, int64_t zero, Json& events) {
  const std::string host =
      task.host.empty() ? "" : absl::StrCat(" on ", task.host);
  // The row 0 is the process itself, so spans begin at 1.
  events.push_back(NameEvent("process_name", pid, 0, task.task + host));
  // A row is free for a span only if all earlier spans have been placed.
  std::vector<Span> spans = task.spans;
  std::stable_sort(
      spans.begin(), spans.end(),
      [](const Span& a, const Span& b) { return a.begin < b.begin; });
  struct Row {
    int tid = 0;
    int64_t free_at = 0;
  };
  std::map<std::string, std::vector<Row>> rows;
  int last_tid = 0;
  for (const Span& span : spans) {
    const char* group = GroupOf(span.kind);
    std::vector<Row>& of_group = rows[group];
    auto row = std::find_if(
        of_group.begin(), of_group.end(),
        [&](const Row& each) { return each.free_at <= span.begin; });
    if (row == of_group.end()) {
      of_group.push_back({++last_tid, 0});
      row = std::prev(of_group.end());
      const std::string number =
          of_group.size() == 1 ? "" : absl::StrCat(" ", of_group.size());
      events.push_back(NameEvent("thread_name", pid, row->tid, group + number));
    }
    row->free_at = span.end;
    events.push_back(SpanEvent(span, group, pid, row->tid, zero));
  }
}

}  // namespace

std::string ChromeTraceJson(const JobTrace& trace) {
  int64_t zero = std::numeric_limits<int64_t>::max();
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) zero = std::min(zero, span.begin);
  }
  Json events = Json::array();
  int pid = 0;
  for (const TaskTrace& task : trace.tasks) {
    AddTask(task, ++pid, zero, events);
  }
  Json other = {
      {"clock_error_us", static_cast<double>(ClockError(trace)) / 1e3},
      {"silent_tasks", trace.silent}};
  const Json whole = {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ns"},
                      {"otherData", std::move(other)}};
  // A host's name need not be UTF-8.
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::cli
