#include "worker/compute/cpu/gemm.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::cpu {
namespace {

using ::testing::ElementsAre;

// [1 2 3; 4 5 6] and [1 0; 0 1; 1 1]: the product is [4 5; 10 11].
const std::vector<double> kA = {1, 2, 3, 4, 5, 6};
const std::vector<double> kATransposed = {1, 4, 2, 5, 3, 6};
const std::vector<double> kB = {1, 0, 0, 1, 1, 1};
const std::vector<double> kBTransposed = {1, 0, 1, 0, 1, 1};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(GemmTest, OverwritesEvenNaN) {
  std::vector<double> out(4, kNaN);

  Gemm({.m = 2, .n = 2, .k = 3}, kA.data(), kB.data(), false, out.data());

  EXPECT_THAT(out, ElementsAre(4, 5, 10, 11));
}

TEST(GemmTest, AccumulateAdds) {
  std::vector<double> out = {1, 2, 3, 4};

  Gemm({.m = 2, .n = 2, .k = 3}, kA.data(), kB.data(), true, out.data());

  EXPECT_THAT(out, ElementsAre(5, 7, 13, 15));
}

TEST(GemmTest, TransposedAreStoredTheOtherWayRound) {
  std::vector<double> out(4);

  Gemm({.m = 2, .n = 2, .k = 3, .transpose_a = true, .transpose_b = true},
       kATransposed.data(), kBTransposed.data(), false, out.data());

  EXPECT_THAT(out, ElementsAre(4, 5, 10, 11));
}

TEST(GemmTest, FloatIsTheSame) {
  const std::vector<float> a(kA.begin(), kA.end());
  const std::vector<float> b(kB.begin(), kB.end());
  std::vector<float> out(4);

  Gemm({.m = 2, .n = 2, .k = 3}, a.data(), b.data(), false, out.data());

  EXPECT_THAT(out, ElementsAre(4, 5, 10, 11));
}

TEST(GemmTest, SumOverNothingIsZero) {
  std::vector<double> out = {kNaN, kNaN};

  Gemm<double>({.m = 1, .n = 2, .k = 0}, nullptr, nullptr, false, out.data());

  EXPECT_THAT(out, ElementsAre(0, 0));
}

TEST(GemmTest, AddingASumOverNothingChangesNothing) {
  std::vector<double> out = {1, 2};

  Gemm<double>({.m = 1, .n = 2, .k = 0}, nullptr, nullptr, true, out.data());

  EXPECT_THAT(out, ElementsAre(1, 2));
}

}  // namespace
}  // namespace lockstep::worker::cpu
