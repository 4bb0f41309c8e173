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

// The use of a worker's time. All but kCompute and kOther are waits for other
// processes or for data.
enum class Phase { kWait, kPull, kCompute, kPush, kOther };
inline constexpr int kPhases = 5;
// "wait", "pull", ...
absl::string_view PhaseName(Phase phase);

// The time of one pass, by phase. A pass ends when its fate is known; computing
// early for the next one counts for the pass before it.
using PhaseTimes = std::array<absl::Duration, kPhases>;

// ProgressMeter counts a worker's passes and measures how long it waits, for
// its reports to the chief, and records the phases of its passes as spans.
//
// Threads: safe to share: the loop writes, the heartbeats read.
// Borrows: the clock, and the recorder, whose clock must be the same; null: no
//          spans are recorded.
class ProgressMeter {
 public:
  // Calls `on_pass`, if it is set, with the times of each pass that ends, in
  // the thread of the loop.
  explicit ProgressMeter(
      const Clock& clock, SpanRecorder* spans = nullptr,
      std::function<void(const PhaseTimes& times)> on_pass = nullptr);

  // The worker begins `activity`, a text for people. While it lasts, `more`
  // says how far it is, or "" in place of which `activity` stands; any thread
  // may call it.
  void Begin(const std::string& activity, Phase phase,
             std::function<std::string()> more = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The worker begins a phase of the pass that follows `step`; -1: of the
  // newest values there are. `attempt` is as Span has it; `micro_batch` is the
  // number of a shared step that the pass computes, or -1. What is no computing
  // counts as waiting.
  void Begin(SpanKind phase, int64_t step, int64_t attempt = 0,
             int64_t micro_batch = -1) ABSL_LOCKS_EXCLUDED(mutex_);

  void Computed(int64_t local_step, double loss, int64_t examples)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Elements of a gradient that were NaN or infinite.
  void NonFinite(int64_t elements) ABSL_LOCKS_EXCLUDED(mutex_);
  // A figure of the user's program, in place of an earlier one of that name.
  //
  //   kInvalidArgument  as CheckFigures()
  absl::Status Report(const NamedFigure& figure) ABSL_LOCKS_EXCLUDED(mutex_);
  // The pass was dropped before its gradient was computed: it is stale.
  void Dropped() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accepted() ABSL_LOCKS_EXCLUDED(mutex_);
  void Stale() ABSL_LOCKS_EXCLUDED(mutex_);
  void Duplicates(int64_t parts) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the counts so far; `waiting` includes the wait at hand.
  Progress Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Adds the time up to `now` to the phase at hand.
  void Settle(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The pass has been computed, or dropped: notes how long that took.
  void EndComputing(bool dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the times of the pass on, and begins those of the next.
  void EndPass() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the activity at hand at `now`, and records it if it was a phase.
  void End(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  SpanRecorder* const spans_;
  const std::function<void(const PhaseTimes&)> on_pass_;

  mutable Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  Phase use_ ABSL_GUARDED_BY(mutex_) = Phase::kOther;
  PhaseTimes times_ ABSL_GUARDED_BY(mutex_) = {};  // since the last pass ended
  absl::Time since_ ABSL_GUARDED_BY(mutex_);       // of the activity
  absl::Time counted_ ABSL_GUARDED_BY(mutex_);  // up to here, as Settle() does
  std::function<std::string()> more_ ABSL_GUARDED_BY(mutex_);
  // The phase at hand, if the activity is one; its text is made when it is
  // asked for, as there are many phases between two reports.
  std::optional<Span> phase_ ABSL_GUARDED_BY(mutex_);
  int64_t micro_batch_ ABSL_GUARDED_BY(mutex_) = -1;  // of that phase
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_PROGRESS_METER_H_
