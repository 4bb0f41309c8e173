#ifndef LOCKSTEP_SERVER_OPTIMIZER_STREAM_COPY_H_
#define LOCKSTEP_SERVER_OPTIMIZER_STREAM_COPY_H_

#include <cstddef>

namespace lockstep {

// Copies `size` bytes to memory that nobody reads soon: past the caches, so
// that they keep what is needed next and the old contents are not fetched
// first. A plain copy where the processor has no such stores or `to` does not
// start at a multiple of 16 bytes.
//
// Other threads may see the bytes late: call FinishStreaming() before telling
// them.
void StreamCopy(size_t size, const std::byte* from, std::byte* to);

// What this thread has copied is in memory before anything that it writes next.
void FinishStreaming();

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_STREAM_COPY_H_
