#include "server/optimizer/stream_copy.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep {

void StreamCopy(size_t size, const std::byte* from, std::byte* to) {
  size_t done = 0;
#if defined(__SSE2__)
  constexpr size_t kWord = sizeof(__m128i);
  if (reinterpret_cast<uintptr_t>(to) % kWord == 0) {
    for (; done + kWord <= size; done += kWord) {
      _mm_stream_si128(
          reinterpret_cast<__m128i*>(to + done),
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done)));
    }
  }
#endif
  std::memcpy(to + done, from + done, size - done);
}

void FinishStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace lockstep
