#include "worker/loop/gradient_source.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(GradientSourceTest, ResultOfReplicasHasTheMeanLossAndAllCounts) {
  const GradientResult all =
      ResultOfReplicas({{.loss = 1, .examples = 8, .non_finite = 2},
                        {.loss = 4, .examples = 2}});

  // A replica with fewer examples weighs as much as another one.
  EXPECT_EQ(all.loss, 2.5);
  EXPECT_EQ(all.examples, 10);
  EXPECT_EQ(all.non_finite, 2);
}

}  // namespace
}  // namespace lockstep::worker
