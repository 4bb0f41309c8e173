#include "worker/shared_values.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/write_counters.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep {
namespace {

#if defined(__SSE2__)
constexpr size_t kLine = 64;
// Values that no cache holds until they are used are written past the caches:
// then what they replace need not be read.
constexpr size_t kStreamFrom = size_t{256} << 10;

// Whole cache lines; returns how many bytes. `to` starts one.
size_t StreamLines(std::byte* to, const std::byte* from, size_t size) {
  size_t done = 0;
  for (; done + kLine <= size; done += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + done);
    auto* out = reinterpret_cast<__m128i*>(to + done);
    const __m128i line[] = {_mm_loadu_si128(in), _mm_loadu_si128(in + 1),
                            _mm_loadu_si128(in + 2), _mm_loadu_si128(in + 3)};
    for (int i = 0; i < 4; ++i) _mm_stream_si128(out + i, line[i]);
  }
  _mm_sfence();
  return done;
}

void CopyBytes(std::byte* to, const std::byte* from, size_t size) {
  size_t done = 0;
  if (size >= kStreamFrom) {
    done = -reinterpret_cast<uintptr_t>(to) % kLine;
    std::memcpy(to, from, done);
    done += StreamLines(to + done, from + done, size - done);
  }
  std::memcpy(to + done, from + done, size - done);
}
#else
void CopyBytes(std::byte* to, const std::byte* from, size_t size) {
  std::memcpy(to, from, size);
}
#endif

}  // namespace

absl::StatusOr<SharedValues> SharedValues::Open(const SharedFile& values,
                                                const SharedFile& counters) {
  // The counters' proof is random: if that is right, so is the process.
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<const PeerMemory> opened_counters,
      PeerMemory::Open(counters, PeerMemory::Require::kSealed));
  if (counters.pid != values.pid) {
    return absl::InvalidArgumentError(absl::StrCat(
        "values are of process ", values.pid, ", counters of ", counters.pid));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<const PeerMemory> opened_values,
      PeerMemory::Open(values, PeerMemory::Require::kAnyFile));
  return SharedValues(std::move(opened_values), std::move(opened_counters));
}

SharedValues::SharedValues(std::shared_ptr<const PeerMemory> values,
                           std::shared_ptr<const PeerMemory> counters)
    : values_(std::move(values)), counters_(std::move(counters)) {}

absl::Status SharedValues::Copy(const SharedPlace& place,
                                absl::Span<std::byte> out) const {
  if (!values_->Holds(place.offset, out.size()) ||
      !HasCounter(*counters_, place.counter)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a value of ", out.size(), " bytes at ", place.offset, " with counter ",
        place.counter, " is not in the server's memory"));
  }
  CopyBytes(out.data(), values_->bytes().data() + place.offset, out.size());
  if (!WrittenSince(*counters_, place.counter, place.writes)) {
    return absl::OkStatus();
  }
  return absl::AbortedError("the server wrote there meanwhile");
}

}  // namespace lockstep
