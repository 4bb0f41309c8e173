#ifndef LOCKSTEP_COMMON_NUMERIC_PARALLEL_BLOCKS_H_
#define LOCKSTEP_COMMON_NUMERIC_PARALLEL_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "common/numeric/denormals.h"

namespace lockstep {

// With fewer elements a thread costs more than it saves.
inline constexpr size_t kElementsPerThread = size_t{1} << 19;

// Calls `visit(first, count)` for ranges that together are [0, count), each in
// a thread of its own, one of them the caller's, and returns when all are done.
// There are as many ranges as processors, but none is shorter than
// kElementsPerThread. Subnormal numbers are flushed in all of them. The result
// of `visit` must not depend on how elements are divided.
template <typename Visit>
void ForEachBlock(size_t count, const Visit& visit) {
  // The call reads a file of the system.
  static const size_t processors =
      std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t blocks =
      std::clamp<size_t>(count / kElementsPerThread, 1, processors);
  const auto run = [&](size_t block) {
    const ScopedFlushDenormals flush;
    const size_t first = count * block / blocks;
    visit(first, count * (block + 1) / blocks - first);
  };
  std::vector<std::thread> threads;
  threads.reserve(blocks);
  for (size_t block = 1; block < blocks; ++block) {
    try {
      threads.emplace_back(run, block);
    } catch (const std::system_error&) {  // the system gives no more of them
      run(block);
    }
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NUMERIC_PARALLEL_BLOCKS_H_
