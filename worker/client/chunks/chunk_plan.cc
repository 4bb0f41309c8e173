#include "worker/client/chunks/chunk_plan.h"

namespace lockstep::worker {

std::vector<std::vector<Chunk>> MakeChunks(const Plan& plan, int num_servers,
                                           size_t target_bytes) {
  std::vector<std::vector<Chunk>> chunks(num_servers);
  for (const Part& part : plan.parts) {
    if (plan.variables[part.variable].is_table()) {
      // A part of a table is a chunk by itself, whose size each pass decides.
      chunks[part.server].push_back(
          {part.index, 1, 0, {{part.variable, 0, 0}}, part});
      continue;
    }
    const size_t element = ElementSize(plan.variables[part.variable].dtype);
    const size_t size = part.count * element;
    std::vector<Chunk>& of_server = chunks[part.server];
    // Indexes of parts in a message are consecutive, so a table in between ends
    // a chunk.
    if (of_server.empty() || of_server.back().table.has_value() ||
        of_server.back().size + size > target_bytes) {
      of_server.push_back({part.index, 0, 0, {}});
    }
    Chunk& chunk = of_server.back();
    ++chunk.num_parts;
    chunk.size += size;
    chunk.ranges.push_back({part.variable, part.offset * element, size});
  }
  return chunks;
}

}  // namespace lockstep::worker
