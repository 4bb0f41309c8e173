#include "common/trace/span_ring.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lockstep {
namespace {

using Words = std::array<uint64_t, 5>;

Words Pack(const Span& span) {
  return {static_cast<uint64_t>(span.begin), static_cast<uint64_t>(span.end),
          static_cast<uint64_t>(span.step),
          uint64_t{static_cast<uint32_t>(span.part)} << 32 |
              static_cast<uint32_t>(span.peer),
          uint64_t{span.attempt} << 16 | uint64_t{span.flags} << 8 |
              static_cast<uint64_t>(span.kind)};
}

Span Unpack(const Words& words) {
  Span span;
  span.begin = static_cast<int64_t>(words[0]);
  span.end = static_cast<int64_t>(words[1]);
  span.step = static_cast<int64_t>(words[2]);
  span.part = static_cast<int32_t>(words[3] >> 32);
  span.peer = static_cast<int32_t>(words[3] & 0xffffffff);
  span.attempt = static_cast<uint16_t>(words[4] >> 16);
  span.flags = static_cast<uint8_t>(words[4] >> 8);
  span.kind = static_cast<SpanKind>(words[4] & 0xff);
  return span;
}

}  // namespace

void SpanRing::FreeMemory::operator()(Place* places) const { free(places); }

SpanRing::SpanRing(size_t capacity)
    : capacity_(std::max<size_t>(capacity, 1)),
      // calloc() leaves large memory to the system, which gives zero pages.
      places_(static_cast<Place*>(calloc(capacity_, sizeof(Place)))) {
  if (places_ == nullptr) throw std::bad_alloc();
}

void SpanRing::Add(const Span& span) {
  const uint64_t index = count_.fetch_add(1, std::memory_order_relaxed);
  Place& place = places_[index % capacity_];
  uint64_t state = place.state.load(std::memory_order_relaxed);
  const uint64_t written = 2 * (index + 1);
  // Drops the span if a slow writer is still here, or a fast one has overtaken
  // this one by a whole round.
  if (state % 2 != 0 || state >= written ||
      !place.state.compare_exchange_strong(state, written - 1,
                                           std::memory_order_acquire)) {
    return;
  }
  const Words words = Pack(span);
  // Release: a reader that sees one of these words also sees the odd state, or
  // a later one.
  for (size_t i = 0; i < words.size(); ++i) {
    place.words[i].store(words[i], std::memory_order_release);
  }
  place.state.store(written, std::memory_order_release);
}

std::vector<Span> SpanRing::Newest(size_t most) const {
  const uint64_t count = count_.load(std::memory_order_acquire);
  const uint64_t wanted = std::min<uint64_t>({most, capacity_, count});
  std::vector<Span> spans;
  spans.reserve(wanted);
  for (uint64_t index = count - wanted; index < count; ++index) {
    const Place& place = places_[index % capacity_];
    const uint64_t written = 2 * (index + 1);
    if (place.state.load(std::memory_order_acquire) != written) continue;
    Words words;
    for (size_t i = 0; i < words.size(); ++i) {
      // Acquire, so that the load of `state` below cannot move before these.
      words[i] = place.words[i].load(std::memory_order_acquire);
    }
    // Changed meanwhile: the words may be of two spans.
    if (place.state.load(std::memory_order_relaxed) != written) continue;
    spans.push_back(Unpack(words));
  }
  return spans;
}

}  // namespace lockstep
