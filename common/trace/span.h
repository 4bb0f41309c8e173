#ifndef LOCKSTEP_COMMON_TRACE_SPAN_H_
#define LOCKSTEP_COMMON_TRACE_SPAN_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// The activities of a step that processes record. A worker has one activity of
// kToken to kAwaitValues at a time, except kReadData, which lies within another
// one. The numbers are those of v1::SpanKind.
enum class SpanKind : uint8_t {
  kToken = 1,         // a worker waits for the token of its next step
  kPull = 2,          // it brings variables into its memory
  kReadData = 3,      // it waits for a batch
  kForward = 4,       // the first half of a pass
  kBackward = 5,      // the second half, or all of a pass of a user's program
  kAnnounce = 6,      // it asks to be selected
  kPush = 7,          // all is computed; it waits for the answers to its pushes
  kAwaitValues = 8,   // the forward pass waits for values of the next step
  kReceive = 9,       // a server takes one push of worker `peer`
  kUpdate = 10,       // it updates a part
  kPrepare = 11,      // its last part is updated: a moment
  kCommit = 12,       // it commits the step
  kTake = 13,         // the chief waits until server `peer` is prepared
  kOrderCommit = 14,  // the chief commits on ps 0
  kCheckpointCopy = 15,   // servers copy their state aside
  kCheckpointWrite = 16,  // the chief writes the copy to disk
  kDeath = 17,            // the chief has noticed that worker `peer` died
};
inline constexpr int kSpanKinds = 18;  // 0 is none

// Returns the kind's name in traces, e.g. "wait for token"; "" for none.
absl::string_view SpanName(SpanKind kind);

// One activity of one process, in the time of its clock.
struct Span {
  static constexpr uint8_t kShared = 1;    // the push is in shared memory
  static constexpr uint8_t kBFloat16 = 2;  // the push is rounded

  SpanKind kind = SpanKind::kToken;
  uint8_t flags = 0;
  uint16_t attempt = 0;  // of the step, at most 65535; 0: not known
  // A part of the server or, if work is shared, the micro-batch that kForward
  // computes. -1: none.
  int32_t part = -1;
  int32_t peer = -1;  // as the kind has it; -1: none
  // Committed steps when it began: the activity belongs to the step after them.
  // -1: the step of the span around it.
  int64_t step = -1;
  int64_t begin = 0;  // ns since the Unix epoch
  int64_t end = 0;    // the same; not before `begin`

  friend bool operator==(const Span&, const Span&) = default;
};

// Returns `attempt` as a span holds it.
inline uint16_t SpanAttempt(int64_t attempt) {
  if (attempt < 0) return 0;
  return attempt > 65535 ? 65535 : static_cast<uint16_t>(attempt);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_SPAN_H_
