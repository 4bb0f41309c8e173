#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_PLAN_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/plan/plan.h"

namespace lockstep::worker {

// A range of a variable's memory.
//
// Units: bytes.
struct ByteRange {
  int variable = 0;
  size_t offset = 0;
  size_t size = 0;
};

// A chunk is the content of one message: consecutive parts of one server, or
// rows of one part of a table.
struct Chunk {
  int first_part = 0;
  int num_parts = 0;
  size_t size = 0;                // bytes of all parts
  std::vector<ByteRange> ranges;  // one per part, in order
  // Set if the chunk is this part of a table. `size` and the range's size are
  // then 0, since the pass decides which rows travel.
  std::optional<Part> table = {};
};

// Packs the parts of each server into chunks of about `target_bytes`: small
// parts travel many to a message, a part as large as that travels alone.
// Returns the chunks by server.
std::vector<std::vector<Chunk>> MakeChunks(const Plan& plan, int num_servers,
                                           size_t target_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_PLAN_H_
