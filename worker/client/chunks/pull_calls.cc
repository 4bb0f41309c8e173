#include "worker/client/chunks/pull_calls.h"

namespace lockstep::worker {
namespace {

bool Joins(const PullCall& call, size_t index, const Chunk& chunk,
           size_t most_bytes) {
  return index == call.first + call.count && !chunk.table.has_value() &&
         !call.chunk.table.has_value() &&
         chunk.first_part == call.chunk.first_part + call.chunk.num_parts &&
         call.chunk.size + chunk.size <= most_bytes;
}

void Join(const Chunk& chunk, PullCall& call) {
  ++call.count;
  call.chunk.num_parts += chunk.num_parts;
  call.chunk.size += chunk.size;
  call.chunk.ranges.insert(call.chunk.ranges.end(), chunk.ranges.begin(),
                           chunk.ranges.end());
}

}  // namespace

std::vector<PullCall> MakePullCalls(const std::vector<Chunk>& chunks,
                                    const std::deque<size_t>& missing,
                                    size_t most_bytes) {
  std::vector<PullCall> calls;
  for (const size_t index : missing) {
    const Chunk& chunk = chunks[index];
    if (!calls.empty() && Joins(calls.back(), index, chunk, most_bytes)) {
      Join(chunk, calls.back());
    } else {
      calls.push_back({index, 1, chunk});
    }
  }
  return calls;
}

}  // namespace lockstep::worker
