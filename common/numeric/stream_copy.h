#ifndef LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_
#define LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_

#include <cstddef>

namespace lockstep {

// Copies `size` bytes to memory that nobody reads before much else has been
// written: past the caches, so that they keep what is needed next and the old
// contents are not fetched first. Whole cache lines of `to` go that way, what
// lies before and after them as in any copy; all of it where the processor has
// no such stores.
//
// Other threads may see the bytes late: call FinishStreaming() before telling
// them.
void StreamCopy(size_t size, const std::byte* from, std::byte* to);

// Units: bytes. From this size on values that arrive together are in no cache
// by the time that a pass uses them.
inline constexpr size_t kStreamFrom = size_t{256} << 10;

// What this thread has copied is in memory before anything that it writes next.
void FinishStreaming();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_
