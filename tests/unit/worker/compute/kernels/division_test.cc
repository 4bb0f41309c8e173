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

}  // namespace
}  // namespace lockstep::worker
