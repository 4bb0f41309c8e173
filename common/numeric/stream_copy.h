#ifndef LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_
#define LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_

#include <cstddef>

namespace lockstep {

// Copies `size` bytes with stores that bypass the caches, so that the caches
// keep other data and the old contents of `to` are not fetched first. Use it
// for memory that is not read before much other data has been written. Whole
// cache lines of `to` are written that way, the bytes before and after them
// normally; on processors without such stores, all bytes are written normally.
//
// Other threads may see the bytes late: the caller must call FinishStreaming()
// before it notifies them.
void StreamCopy(size_t size, const std::byte* from, std::byte* to);

// Units: bytes. Values of this size and above, arriving together, would leave
// the caches before a pass uses them.
inline constexpr size_t kStreamFrom = size_t{256} << 10;

// Orders this thread's streamed stores before all its later stores.
void FinishStreaming();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_STREAM_COPY_H_
