#ifndef LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SPANS_MADE_JOB_H_
#define LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SPANS_MADE_JOB_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/cli/spans/job_trace.h"

namespace lockstep::cli {

// MadeJob makes the spans of a job whose steps take as long as a test says. All
// times are in microseconds.
class MadeJob {
 public:
  // A step of one worker, one activity after the other.
  struct Worker {
    int64_t token = 10;
    int64_t pull = 10;
    int64_t read = 0;  // within the forward pass
    int64_t forward = 100;
    int64_t backward = 100;
    int64_t announce = 0;
    int64_t send = 20;
    bool counts = true;  // in the set of the step
    bool recorded = true;
  };
  struct Server {
    // The times of parts, one after the other, once all gradients are there.
    std::vector<int64_t> updates = {10, 10, 10, 10};
  };

  explicit MadeJob(int workers, int servers = 1)
      : workers(static_cast<size_t>(workers)),
        servers(static_cast<size_t>(servers)) {}

  std::vector<Worker> workers;
  std::vector<Server> servers;
  int64_t commit = 10;
  uint8_t flags = Span::kShared;  // of pushes
  bool shared_work = false;       // each worker computes a micro-batch
  int64_t step = 100;             // the next one
  int64_t now = 1'000'000;

  // Adds `count` steps.
  void Run(int count = 1) {
    for (; count > 0; --count) RunStep();
  }

  void Died(int worker) {
    chief_.push_back({.kind = SpanKind::kDeath,
                      .peer = worker,
                      .step = step,
                      .begin = now * 1000,
                      .end = now * 1000});
  }

  JobTrace Trace() const {
    JobTrace trace;
    trace.tasks.push_back({"chief 0", "host", {0, 0}, chief_});
    for (const auto& [task, spans] : spans_) {
      trace.tasks.push_back({task, "host", {0, 1000}, spans});
    }
    return trace;
  }

 private:
  void Add(const std::string& task, Span span, int64_t begin, int64_t end) {
    span.step = span.kind == SpanKind::kReadData ? -1 : step;
    span.begin = begin * 1000;
    span.end = end * 1000;
    spans_[task].push_back(span);
  }

  // Returns when its push has come.
  int64_t RunWorker(int index) {
    const Worker& worker = workers[index];
    const std::string task = absl::StrCat("worker ", index);
    int64_t at = now;
    const auto phase = [&](SpanKind kind, int64_t time) {
      if (worker.recorded && time > 0) Add(task, {.kind = kind}, at, at + time);
      at += time;
    };
    phase(SpanKind::kToken, worker.token);
    phase(SpanKind::kPull, worker.pull);
    if (worker.recorded && worker.read > 0) {
      Add(task, {.kind = SpanKind::kReadData}, at, at + worker.read);
    }
    phase(SpanKind::kForward, worker.read + worker.forward);
    if (shared_work) spans_[task].back().part = index;
    phase(SpanKind::kBackward, worker.backward);
    phase(SpanKind::kAnnounce, worker.announce);
    if (worker.counts) pushed_[index] = at;
    return at + worker.send;
  }

  void RunStep() {
    std::map<int, int64_t> arrived;
    for (size_t i = 0; i < workers.size(); ++i) {
      const int64_t at = RunWorker(static_cast<int>(i));
      if (workers[i].counts) arrived[static_cast<int>(i)] = at;
    }
    int64_t prepared = 0;
    for (size_t s = 0; s < servers.size(); ++s) {
      const std::string task = absl::StrCat("ps ", s);
      int64_t at = 0;
      for (const auto& [worker, when] : arrived) {
        Add(task,
            {.kind = SpanKind::kReceive,
             .flags = flags,
             .attempt = 1,
             .part = 0,
             .peer = worker},
            when - 1, when);
        at = std::max(at, when);
      }
      for (size_t part = 0; part < servers[s].updates.size(); ++part) {
        const int64_t update = servers[s].updates[part];
        Add(task, {.kind = SpanKind::kUpdate, .part = static_cast<int>(part)},
            at, at + update);
        at += update;
      }
      Add(task, {.kind = SpanKind::kPrepare, .attempt = 1}, at, at);
      prepared = std::max(prepared, at);
    }
    for (const auto& [worker, at] : pushed_) {
      if (!workers[worker].recorded) continue;
      Add(absl::StrCat("worker ", worker), {.kind = SpanKind::kPush}, at,
          prepared);
    }
    pushed_.clear();
    now = prepared + commit;
    for (size_t s = 0; s < servers.size(); ++s) {
      Add(absl::StrCat("ps ", s), {.kind = SpanKind::kCommit}, prepared, now);
    }
    ++step;
  }

  std::map<std::string, std::vector<Span>> spans_;
  std::vector<Span> chief_;
  std::map<int, int64_t> pushed_;  // when, by worker
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_TESTS_UNIT_DEPLOY_CLI_SPANS_MADE_JOB_H_
