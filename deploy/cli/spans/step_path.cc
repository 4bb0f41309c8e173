#include "deploy/cli/spans/step_path.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "deploy/cli/spans/intervals.h"

namespace lockstep::cli {
namespace {

// The spans of one step at one server.
struct ServerStep {
  std::vector<Span> receives;
  std::vector<Span> updates;
  int64_t prepared = 0;  // 0: not known
  int attempt = 0;       // that was prepared; 0: not known
  std::optional<int64_t> committed;
};

// The spans of a job by task.
struct ByTask {
  std::map<int, std::map<int64_t, ServerStep>> servers;  // then by step
  std::map<int, std::vector<Span>> workers;  // by beginning; with no data reads
  std::map<int, Intervals> reads;            // of workers
  Intervals copies;                          // for checkpoints
  bool mirrored = false;                     // each server has all parts
  std::set<int> silent;  // workers that live, and hand no spans in
};

std::optional<int> IndexOf(absl::string_view task, absl::string_view type) {
  int index = 0;
  if (!absl::ConsumePrefix(&task, type) || !absl::SimpleAtoi(task, &index)) {
    return std::nullopt;
  }
  return index;
}

void AddServerSpan(const Span& span, std::map<int64_t, ServerStep>& steps) {
  if (span.step < 0) return;
  ServerStep& step = steps[span.step];
  if (span.kind == SpanKind::kReceive) step.receives.push_back(span);
  if (span.kind == SpanKind::kUpdate) step.updates.push_back(span);
  // The last attempt is the one that was committed.
  if (span.kind == SpanKind::kPrepare && span.end > step.prepared) {
    step.prepared = span.end;
    step.attempt = span.attempt;
  }
  if (span.kind == SpanKind::kCommit) {
    // The first one counts if a commit was repeated.
    step.committed = std::min(step.committed.value_or(span.end), span.end);
  }
}

// A silent worker may have been killed: then its time is that of an absent one.
std::set<int> SilentWorkers(const JobTrace& trace) {
  std::set<int> silent;
  for (const std::string& task : trace.silent) {
    if (const auto worker = IndexOf(task, "worker ")) silent.insert(*worker);
  }
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (span.kind == SpanKind::kDeath) silent.erase(span.peer);
    }
  }
  return silent;
}

ByTask Sort(const JobTrace& trace) {
  ByTask by;
  by.mirrored = trace.limits.no_servers;
  by.silent = SilentWorkers(trace);
  for (const TaskTrace& task : trace.tasks) {
    if (const auto server = IndexOf(task.task, "ps ")) {
      for (const Span& span : task.spans) {
        AddServerSpan(span, by.servers[*server]);
      }
    } else if (const auto worker = IndexOf(task.task, "worker ")) {
      for (const Span& span : task.spans) {
        if (span.kind == SpanKind::kReadData) {
          by.reads[*worker].Add(span.begin, span.end);
        } else {
          by.workers[*worker].push_back(span);
        }
      }
    }
    for (const Span& span : task.spans) {
      if (span.kind != SpanKind::kCheckpointCopy) continue;
      by.copies.Add(span.begin, span.end);
    }
  }
  for (auto& [worker, spans] : by.workers) {
    std::stable_sort(
        spans.begin(), spans.end(),
        [](const Span& a, const Span& b) { return a.begin < b.begin; });
  }
  return by;
}

// In compatible mode servers do not say that they are prepared.
int64_t PreparedAt(const ServerStep& step) {
  if (step.prepared > 0) return step.prepared;
  int64_t last = 0;
  for (const Span& update : step.updates) last = std::max(last, update.end);
  return last;
}

// The last push of a worker.
struct Arrival {
  int64_t at = 0;
  const ServerStep* server = nullptr;  // that received it
};

// Adds the last push of each worker to `server`, among those that count.
void AddArrivals(const ServerStep& server, int64_t prepared,
                 std::map<int, Arrival>& arrivals) {
  for (const Span& push : server.receives) {
    const bool counts = server.attempt == 0 || push.attempt == server.attempt;
    // A repeated push comes after the update.
    if (!counts || push.end > prepared) continue;
    Arrival& last = arrivals[push.peer];
    // Times come from other processes, and may even be negative.
    if (last.server == nullptr || push.end > last.at) {
      last = {push.end, &server};
    }
  }
}

// Returns the pushes that the server `last` waited for: its own, or, as each
// mirror needs the means of all others, those of all.
std::map<int, Arrival> Arrivals(const ByTask& by, int64_t step,
                                const ServerStep& last, int64_t prepared) {
  std::map<int, Arrival> arrivals;
  if (!by.mirrored) {
    AddArrivals(last, prepared, arrivals);
    return arrivals;
  }
  for (const auto& [server, steps] : by.servers) {
    const auto found = steps.find(step);
    if (found != steps.end()) AddArrivals(found->second, prepared, arrivals);
  }
  return arrivals;
}

PathPart PartOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kToken:
      return PathPart::kToken;
    case SpanKind::kPull:
    case SpanKind::kAwaitValues:
      return PathPart::kReceiving;
    case SpanKind::kAnnounce:
      return PathPart::kAnnouncing;
    case SpanKind::kPush:
      return PathPart::kSending;
    default:
      return PathPart::kComputing;
  }
}

// Returns what `worker` did for `step` in [begin, arrived).
PathTimes TimesOf(const ByTask& by, int worker, int64_t step, int64_t begin,
                  int64_t arrived) {
  PathTimes times{};
  if (by.silent.contains(worker)) {
    times[static_cast<int>(PathPart::kUnknown)] = arrived - begin;
    return times;
  }
  int64_t known = 0;
  const auto spans = by.workers.find(worker);
  const auto reads = by.reads.find(worker);
  if (spans != by.workers.end()) {
    for (const Span& span : spans->second) {
      // Phases do not overlap, but clocks of a restarted worker may.
      const int64_t from = std::max({span.begin, begin, begin + known});
      const int64_t to = std::min(span.end, arrived);
      if (from >= to) continue;
      // Until the gradients of the step have arrived, the step waits for them,
      // even if the worker has begun the next pass meanwhile.
      const bool sends = span.step > step;
      int64_t reading = 0;
      if (!sends && reads != by.reads.end()) {
        reading = reads->second.Overlap(from, to);
      }
      const PathPart part = sends ? PathPart::kSending : PartOf(span.kind);
      times[static_cast<int>(PathPart::kReading)] += reading;
      times[static_cast<int>(part)] += to - from - reading;
      times[static_cast<int>(PathPart::kAbsent)] +=
          std::max<int64_t>(from - (begin + known), 0);
      known = to - begin;
    }
  }
  // The end of a phase that is not over is not recorded yet; a push that has
  // arrived was sent.
  times[static_cast<int>(PathPart::kAbsent)] +=
      std::max<int64_t>(arrived - begin - known, 0);
  return times;
}

// Part of the time in which a push is under way, its server was busy with
// others: it is the server's.
void ChargeServer(const ServerStep& step, int64_t begin, int64_t arrived,
                  PathTimes& times) {
  int64_t& sending = times[static_cast<int>(PathPart::kSending)];
  Intervals busy;
  for (const Span& update : step.updates) busy.Add(update.begin, update.end);
  const int64_t while_sending = std::min(
      busy.Overlap(std::max(begin, arrived - sending), arrived), sending);
  sending -= while_sending;
  times[static_cast<int>(PathPart::kUpdating)] += while_sending;
}

// Returns the path of `step`, which ps 0 has committed at `end`, after `begin`.
std::optional<StepPath> PathOf(const ByTask& by, int64_t step, int64_t begin,
                               int64_t end) {
  StepPath path{.step = step, .begin = begin, .end = end};
  int64_t prepared = 0;
  const ServerStep* last = nullptr;
  for (const auto& [server, steps] : by.servers) {
    const auto found = steps.find(step);
    if (found == steps.end()) continue;
    const int64_t at = PreparedAt(found->second);
    // 0 is a server without spans of the preparation.
    if (at <= prepared) continue;
    prepared = at;
    last = &found->second;
    path.server = server;
  }
  if (last == nullptr) return std::nullopt;
  // Clocks of other hosts are aligned only within their errors.
  prepared = std::clamp(prepared, begin, end);
  for (const auto& [worker, arrival] : Arrivals(by, step, *last, prepared)) {
    WorkerStep& of = path.workers[worker];
    of.arrived = std::clamp(arrival.at, begin, prepared);
    of.times = TimesOf(by, worker, step, begin, of.arrived);
    ChargeServer(*arrival.server, begin, of.arrived, of.times);
  }
  if (path.workers.empty()) return std::nullopt;
  path.worker = path.workers.begin()->first;
  int64_t latest = path.workers.begin()->second.arrived;
  int64_t before = begin;  // the last but one
  for (const auto& [worker, of] : path.workers) {
    if (of.arrived > latest) {
      before = std::exchange(latest, of.arrived);
      path.worker = worker;
    } else if (worker != path.worker) {
      before = std::max(before, of.arrived);
    }
  }
  path.lateness = path.workers.size() > 1 ? latest - before : 0;
  path.times = path.workers[path.worker].times;
  path.times[static_cast<int>(PathPart::kUpdating)] += prepared - latest;
  const int64_t copied = by.copies.Overlap(prepared, end);
  path.times[static_cast<int>(PathPart::kCheckpoint)] += copied;
  path.times[static_cast<int>(PathPart::kCommitting)] +=
      end - prepared - copied;
  // One part may have several updates.
  std::map<int, int> parts;
  for (const Span& update : last->updates) {
    ++parts[update.part];
    if (update.end <= prepared) path.last_update = update.end - update.begin;
  }
  path.parts = static_cast<int>(parts.size());
  return path;
}

}  // namespace

std::vector<StepPath> StepPaths(const JobTrace& trace) {
  const ByTask by = Sort(trace);
  std::vector<StepPath> paths;
  const auto first = by.servers.find(0);
  if (first == by.servers.end()) return paths;
  std::optional<int64_t> before;  // the commit of the step before
  int64_t step_before = -1;
  for (const auto& [number, step] : first->second) {
    if (!step.committed.has_value()) continue;
    // A path needs the commit of the very step before, whose span may be gone.
    if (before.has_value() && step_before + 1 == number &&
        *before < *step.committed) {
      std::optional<StepPath> path =
          PathOf(by, number, *before, *step.committed);
      if (path.has_value()) paths.push_back(*std::move(path));
    }
    before = step.committed;
    step_before = number;
  }
  return paths;
}

}  // namespace lockstep::cli
