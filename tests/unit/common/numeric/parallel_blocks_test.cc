#include "common/numeric/parallel_blocks.h"

#include <atomic>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ParallelBlocksTest, EveryElementIsVisitedOnce) {
  for (const size_t count :
       {size_t{0}, size_t{1}, kElementsPerThread, 3 * kElementsPerThread + 7}) {
    std::vector<char> visits(count);
    ForEachBlock(count, [&](size_t first, size_t n) {
      for (size_t i = first; i < first + n; ++i) ++visits[i];
    });
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1),
              static_cast<std::ptrdiff_t>(count));
  }
}

TEST(ParallelBlocksTest, SubnormalNumbersAreFlushedInEveryThread) {
  std::atomic<int> not_flushed = 0;
  ForEachBlock(4 * kElementsPerThread, [&](size_t, size_t) {
    volatile float smallest = std::numeric_limits<float>::min();
    if (smallest * 0.5f != 0) ++not_flushed;
  });
  EXPECT_EQ(not_flushed, 0);
}

}  // namespace
}  // namespace lockstep
