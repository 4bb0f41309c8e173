#ifndef LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_
#define LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/plan/figure.h"
#include "common/plan/progress.h"
#include "common/trace/span.h"
#include "common/trace/span_recorder.h"

namespace lockstep::worker {

// The use of a worker's time. kWait, kPull and kPush are waits for other
// processes or for data.
enum class Phase { kWait, kPull, kCompute, kPush, kOther };
inline constexpr int kPhases = 5;
// "wait", "pull", ...
absl::string_view PhaseName(Phase phase);

// The time of one pass, by phase. A pass ends when it is known to be accepted
// or stale; until then the early computation of the next pass counts as its
// time, too.
using PhaseTimes = std::array<absl::Duration, kPhases>;

// ProgressMeter counts a worker's passes and measures how long it waits, for
// its reports to the chief, and records the phases of its passes as spans.
//
// Threads: safe to share: the loop writes, the heartbeats read.
// Borrows: the clock and the recorder, which must use the same clock.
class ProgressMeter {
 public:
  static constexpr int64_t kRecentSteps = 20;

  // Records no spans if `spans` is null. Calls `on_pass`, if it is set, with
  // the times of each pass that ends, in the thread of the loop.
  explicit ProgressMeter(
      const Clock& clock, SpanRecorder* spans = nullptr,
      std::function<void(const PhaseTimes& times)> on_pass = nullptr);

  // Begins `activity`, a text for people, and ends the one before it. While it
  // lasts, Get() calls `more` and shows its result in place of `activity`,
  // unless that is empty. `more` must be safe to call from any thread, and must
  // not call the meter.
  void Begin(const std::string& activity, Phase phase,
             std::function<std::string()> more = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a phase of the pass that follows `step` (-1: of the newest values).
  // `attempt` is that of the step, as in Span; `micro_batch` is the number that
  // the pass computes in a shared step, or -1. Phases other than forward,
  // backward and announcement count as waiting.
  void Begin(SpanKind phase, int64_t step, int64_t attempt = 0,
             int micro_batch = -1) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts a pass whose gradients are computed. Accepted() or Stale() must
  // follow. `loss` is the mean over the batch, `examples` its size.
  // `micro_batches` is the number of micro-batches of shared work in the pass;
  // 0 if work is not shared.
  void Computed(int64_t local_step, double loss, int64_t examples,
                int micro_batches = 0) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds to the number of gradient elements that were NaN or infinite.
  void NonFinite(int64_t elements) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps a figure of the user's program, in place of an earlier one of that
  // name.
  //
  //   kInvalidArgument  as CheckFigures()
  absl::Status Report(const NamedFigure& figure) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a pass that was dropped before its gradient was computed, as stale.
  // Computed(), Accepted() and Stale() must not be called for it.
  void Dropped() ABSL_LOCKS_EXCLUDED(mutex_);
  // End a pass: Accepted() if a step averaged its gradient, else Stale().
  void Accepted() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stale() ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds to the number of parts whose push the servers had already received.
  void Duplicates(int64_t parts) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins anew, with all counts at 0, for another incarnation. Must not be
  // called during a pass.
  void BeginAnew() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the counts so far; `waiting` includes the present wait. The loss is
  // NaN once the worker is more than kRecentSteps steps beyond the pass that it
  // is of: passes that are dropped have none.
  Progress Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Adds the time up to `now` to the current phase.
  void Settle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the computing of a pass and keeps its duration among the newest
  // kPassTimes.
  void EndComputing(bool dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Passes the phase times of the pass to `on_pass_` and resets them.
  void EndPass() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the current activity at `now`, and records it if it was a phase.
  void End(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  SpanRecorder* const spans_;
  const std::function<void(const PhaseTimes&)> on_pass_;

  mutable Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  Phase use_ ABSL_GUARDED_BY(mutex_) = Phase::kOther;
  PhaseTimes times_ ABSL_GUARDED_BY(mutex_) = {};  // since the last pass ended
  absl::Time since_ ABSL_GUARDED_BY(mutex_);       // begin of the activity
  absl::Time counted_ ABSL_GUARDED_BY(mutex_);     // `now` of the last Settle()
  std::function<std::string()> more_ ABSL_GUARDED_BY(mutex_);
  // The current phase, if the activity is one. Its text is made only in Get(),
  // as there are many phases between two reports.
  std::optional<Span> phase_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = -1;  // that of the newest phase
  // The time of announcements of the pass at hand.
  absl::Duration announcing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_
