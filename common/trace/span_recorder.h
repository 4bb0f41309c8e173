#ifndef LOCKSTEP_COMMON_TRACE_SPAN_RECORDER_H_
#define LOCKSTEP_COMMON_TRACE_SPAN_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/trace/span.h"
#include "common/trace/span_ring.h"

namespace lockstep {

// SpanRecorder keeps the newest spans of one role of a process. The few spans
// of checkpoints and deaths are kept apart from those of steps, so that steps
// do not displace them.
//
// Threads: safe to share. Borrows: the clock.
class SpanRecorder {
 public:
  // The roles that a process may have, perhaps several at once.
  enum class Role { kWorker, kServer, kChief };

  // Spans of steps that the recorder of a role holds: some thousand steps of
  // a worker, which records about 7 a step; a server records one for each
  // push and each part, and 2 more. In memory: 1.5 MiB, 3 MiB and 0.8 MiB.
  static constexpr size_t kWorkerSpans = 32768;
  static constexpr size_t kServerSpans = 65536;
  static constexpr size_t kChiefSpans = 16384;
  static constexpr size_t kRareSpans = 256;

  SpanRecorder(size_t capacity, const Clock& clock)
      : clock_(clock), steps_(capacity), rare_(kRareSpans) {}

  // The process's recorder of a role, with the real clock. Never destroyed.
  static SpanRecorder& Of(Role role);

  // Returns the clock's time in ns since the Unix epoch.
  int64_t Now() const;

  // Keeps a span, in place of the oldest one of its ring if that is full. Spans
  // of steps have one ring, all others another.
  void Add(const Span& span);

  // Returns at most the newest `most` spans of steps, and all others.
  std::vector<Span> Newest(size_t most) const;

 private:
  const Clock& clock_;
  SpanRing steps_;
  SpanRing rare_;
};

// SpanTimer records a span that begins with the timer and ends with it.
//
// Threads: not thread-safe.
// Borrows: the recorder; null: nothing is recorded.
class SpanTimer {
 public:
  SpanTimer(SpanRecorder* recorder, const Span& span)
      : recorder_(recorder), span_(span) {
    if (recorder_ != nullptr) span_.begin = recorder_->Now();
  }
  ~SpanTimer() { End(); }
  SpanTimer(const SpanTimer&) = delete;
  SpanTimer& operator=(const SpanTimer&) = delete;

  // Ends the span now. Later calls do nothing.
  void End() {
    if (recorder_ == nullptr) return;
    span_.end = recorder_->Now();
    recorder_->Add(span_);
    recorder_ = nullptr;
  }
  // Ends the timer without recording a span.
  void Drop() { recorder_ = nullptr; }

 private:
  SpanRecorder* recorder_;
  Span span_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_SPAN_RECORDER_H_
