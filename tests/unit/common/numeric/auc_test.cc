#include "common/numeric/auc.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Optional;

TEST(AucTest, IsHowOftenAPositiveExampleIsAbove) {
  EXPECT_THAT(
      AreaUnderCurve({{0.1, false}, {0.4, false}, {0.35, true}, {0.8, true}}),
      Optional(0.75));
  EXPECT_THAT(AreaUnderCurve({{1, true}, {0, false}}), Optional(1.0));
  EXPECT_THAT(AreaUnderCurve({{0, true}, {1, false}}), Optional(0.0));
}

TEST(AucTest, EqualScoresCountHalf) {
  EXPECT_THAT(AreaUnderCurve({{1, true}, {1, false}}), Optional(0.5));
  EXPECT_THAT(AreaUnderCurve({{1, true}, {1, false}, {1, false}, {0, false}}),
              Optional(2.0 / 3));
}

TEST(AucTest, ScoresOfADivergedModelHaveNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(AreaUnderCurve({{1, true}, {nan, false}, {0, false}}),
            std::nullopt);
}

TEST(AucTest, OneClassHasNone) {
  EXPECT_EQ(AreaUnderCurve({}), std::nullopt);
  EXPECT_EQ(AreaUnderCurve({{1, true}, {2, true}}), std::nullopt);
}

}  // namespace
}  // namespace lockstep
