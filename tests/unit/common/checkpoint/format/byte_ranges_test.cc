#include "common/checkpoint/format/byte_ranges.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ByteRangesTest, EmptySetLacksTheFirstByte) {
  ByteRanges ranges;

  EXPECT_EQ(ranges.FirstMissing(), 0u);
  EXPECT_EQ(ranges.num_ranges(), 0u);
}

TEST(ByteRangesTest, RangesThatTouchBecomeOne) {
  ByteRanges ranges;
  ranges.Add(0, 4);
  ranges.Add(8, 12);
  ASSERT_EQ(ranges.num_ranges(), 2u);

  ranges.Add(4, 8);

  EXPECT_EQ(ranges.num_ranges(), 1u);
  EXPECT_EQ(ranges.FirstMissing(), 12u);
}

TEST(ByteRangesTest, HoleAtTheStartIsSeen) {
  ByteRanges ranges;
  ranges.Add(1, 100);

  EXPECT_EQ(ranges.FirstMissing(), 0u);
}

TEST(ByteRangesTest, RangeInsideAnotherChangesNothing) {
  ByteRanges ranges;
  ranges.Add(0, 100);
  ranges.Add(10, 20);
  ranges.Add(0, 100);

  EXPECT_EQ(ranges.num_ranges(), 1u);
  EXPECT_EQ(ranges.FirstMissing(), 100u);
}

TEST(ByteRangesTest, EmptyRangeIsIgnored) {
  ByteRanges ranges;
  ranges.Add(5, 5);
  ranges.Add(6, 5);

  EXPECT_EQ(ranges.num_ranges(), 0u);
}

TEST(ByteRangesTest, AnyOrderAgreesWithAPlainModel) {
  std::mt19937 random(20240229);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<bool> model(64, false);
    for (int i = 0; i < 20; ++i) {
      const uint64_t begin = random() % 64;
      const uint64_t end = std::min<uint64_t>(64, begin + random() % 12);
      ranges.Add(begin, end);
      std::fill(model.begin() + begin, model.begin() + end, true);

      const auto hole = std::find(model.begin(), model.end(), false);
      ASSERT_EQ(ranges.FirstMissing(),
                static_cast<uint64_t>(hole - model.begin()));
      size_t runs = model[0] ? 1 : 0;
      for (int b = 1; b < 64; ++b) runs += model[b] && !model[b - 1];
      ASSERT_EQ(ranges.num_ranges(), runs);
    }
  }
}

}  // namespace
}  // namespace lockstep
