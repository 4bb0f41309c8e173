#include "common/numeric/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep {
namespace {

#if defined(__SSE2__)
constexpr size_t kLine = 64;

size_t ToNextLine(const std::byte* to) {
  // Unsigned negation wraps around, so this is the distance to the next
  // multiple.
  return -reinterpret_cast<uintptr_t>(to) % kLine;
}

// Copies whole cache lines and returns the number of bytes. `to` must start a
// cache line.
size_t StreamLines(size_t size, const std::byte* from, std::byte* to) {
  size_t done = 0;
  for (; done + kLine <= size; done += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + done);
    auto* out = reinterpret_cast<__m128i*>(to + done);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  return done;
}
#endif

}  // namespace

void StreamCopy(size_t size, const std::byte* from, std::byte* to) {
  size_t done = 0;
#if defined(__SSE2__)
  // Streaming stores must be aligned, so the bytes before the first line are
  // copied as usual.
  done = std::min(size, ToNextLine(to));
  std::memcpy(to, from, done);
  done += StreamLines(size - done, from + done, to + done);
#endif
  std::memcpy(to + done, from + done, size - done);
}

void FinishStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace lockstep
