#include "common/plan/progress.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ProgressTest, OnlyAFiniteLossOfAComputedPassIsOne) {
  EXPECT_TRUE((Progress{.loss = 2, .examples = 10}.HasLoss()));
  EXPECT_TRUE((Progress{.loss = 0, .examples = 10}.HasLoss()));
  EXPECT_TRUE((Progress{.loss = 2, .computed = 1}.HasLoss()));
  EXPECT_TRUE((Progress{.passes = 3, .loss = 2}.HasLoss()));
  EXPECT_FALSE((Progress{.passes = 3}.HasLoss()));
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE((Progress{.loss = loss, .examples = 10}.HasLoss()));
  }
}

}  // namespace
}  // namespace lockstep
