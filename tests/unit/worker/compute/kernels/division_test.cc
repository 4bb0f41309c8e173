#include "worker/compute/kernels/division.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(DivisionTest, IsThatOfTheLanguageOnBothSidesOf32Bits) {
  constexpr int64_t kBits32 = int64_t{1} << 32;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t index : {int64_t{0}, int64_t{1}, int64_t{6}, kBits32 - 1,
                              kBits32, kBits32 + 5, kMost}) {
    for (const int64_t size :
         {int64_t{1}, int64_t{3}, int64_t{7}, kBits32 - 1, kBits32, kMost}) {
      const Division found = Divide(index, size);
      EXPECT_EQ(found.quotient, index / size) << index << " / " << size;
      EXPECT_EQ(found.remainder, index % size) << index << " / " << size;
    }
  }
}

TEST(DivisorTest, IsThatOfTheLanguageForAllIndicesBelowItsLimit) {
  constexpr int64_t kMost = Divisor::kLimit - 1;
  for (const int64_t size :
       {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{640},
        int64_t{641}, int64_t{65'535}, int64_t{65'537}, int64_t{715'827'883},
        int64_t{1} << 30, kMost - 1, kMost}) {
    const Divisor divisor = Divisor::Of(size);
    // Both sides of some multiples, where a quotient changes.
    for (const int64_t multiple :
         {int64_t{0}, size, 2 * size, 3 * size, kMost / size * size,
          (kMost / size - 1) * size, kMost / 2 / size * size, kMost}) {
      for (int64_t index = multiple - 1; index <= multiple + 1; ++index) {
        if (index < 0 || index > kMost) continue;
        const Division found = divisor.Divide(index);
        EXPECT_EQ(found.quotient, index / size) << index << " / " << size;
        EXPECT_EQ(found.remainder, index % size) << index << " / " << size;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
