#ifndef LOCKSTEP_COMMON_TRACE_SPAN_RING_H_
#define LOCKSTEP_COMMON_TRACE_SPAN_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/trace/span.h"

namespace lockstep {

// SpanRing holds the newest spans in memory of a fixed size, kBytesPerSpan for
// each; pages that no span has reached take no memory. Calls do not block: a
// writer whose place is being written at that moment drops its span, and a
// reader leaves out spans that are being written.
//
// Threads: safe to share.
class SpanRing {
 public:
  static constexpr size_t kBytesPerSpan = 48;

  // Holds `capacity` spans, 1 or more.
  explicit SpanRing(size_t capacity);

  // Keeps a span, in place of the oldest one if the ring is full.
  void Add(const Span& span);

  // Returns at most the newest `most` spans, in the order in which they ended.
  std::vector<Span> Newest(size_t most) const;

 private:
  struct Place {
    // Twice the number of the span that is stored here, counted from 1; minus 1
    // while it is being written; 0: none yet.
    std::atomic<uint64_t> state{0};
    std::array<std::atomic<uint64_t>, 5> words;
  };
  static_assert(sizeof(Place) == kBytesPerSpan);

  struct FreeMemory {
    void operator()(Place* places) const;
  };

  const size_t capacity_;
  // All bytes are 0 at first, which is a valid Place without a span.
  const std::unique_ptr<Place[], FreeMemory> places_;
  std::atomic<uint64_t> count_{0};  // of all spans so far
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRACE_SPAN_RING_H_
