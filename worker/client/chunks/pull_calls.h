#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_PULL_CALLS_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_PULL_CALLS_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "worker/client/chunks/chunk_plan.h"

namespace lockstep::worker {

// The chunks of a server that one call pulls.
struct PullCall {
  size_t first = 0;  // the index of the first chunk; the others follow it
  size_t count = 1;
  Chunk chunk;  // the parts of all of them, as one chunk
};

// Packs the chunks of a server at the indices `missing`, ascending, into calls.
// Chunks travel together if their indices and their parts are consecutive and
// they have at most `most_bytes` in all; with 0, and for parts of tables, each
// chunk has a call of its own.
std::vector<PullCall> MakePullCalls(const std::vector<Chunk>& chunks,
                                    const std::deque<size_t>& missing,
                                    size_t most_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_PULL_CALLS_H_
