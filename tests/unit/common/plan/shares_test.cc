#include "common/plan/shares.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SharesTest, OneEachWhereThereAreEnoughReplicas) {
  for (int n = 3; n <= 5; ++n) {
    for (int worker = 0; worker < n; ++worker) {
      EXPECT_EQ(SharesOf(worker, 3, n), 1);
    }
  }
}

TEST(SharesTest, MakeAStepAndDifferByOneAtMost) {
  for (int n = 1; n <= 6; ++n) {
    for (int a = n; a <= 20; ++a) {
      int sum = 0;
      for (int worker = 0; worker < n; ++worker) {
        sum += SharesOf(worker, a, n);
        EXPECT_LE(SharesOf(worker, a, n), SharesOf(0, a, n));
        EXPECT_GE(SharesOf(worker, a, n), SharesOf(0, a, n) - 1);
      }
      EXPECT_EQ(sum, a);
    }
  }
}

}  // namespace
}  // namespace lockstep
