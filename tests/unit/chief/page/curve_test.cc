#include "chief/page/curve.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

CurvePoint At(double step, double value) { return {step, 10 * step, value}; }

TEST(CurveTest, FewSamplesAreKeptAsTheyAre) {
  Curve curve;
  curve.Add(At(1, 5));
  curve.Add(At(2, 3));
  EXPECT_THAT(curve.Points(), ::testing::ElementsAre(At(1, 5), At(2, 3)));
}

TEST(CurveTest, AMillionSamplesTakeTheSameMemoryAndKeepTheWholeCurve) {
  Curve curve;
  constexpr int kSamples = 1'000'000;
  for (int i = 1; i <= kSamples; ++i) curve.Add(At(i, i));
  const std::vector<CurvePoint> points = curve.Points();
  EXPECT_LE(points.size(), Curve::kMostPoints);
  EXPECT_GE(points.size(), Curve::kMostPoints / 2 - 1);
  EXPECT_LT(points.front().step, 0.01 * kSamples);
  EXPECT_EQ(points.back().step, kSamples);
  // A straight line stays one: each value is the middle of its samples.
  const double half = (static_cast<double>(curve.stride()) - 1) / 2;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    EXPECT_DOUBLE_EQ(points[i].value, points[i].step - half);
  }
}

TEST(CurveTest, StepsThatAreMadeAgainReplaceTheFirstOnes) {
  Curve curve;
  for (int i = 1; i <= 5; ++i) curve.Add(At(i, 1));
  curve.Add(At(3, 9));
  EXPECT_THAT(curve.Points(),
              ::testing::ElementsAre(At(1, 1), At(2, 1), At(3, 1), At(3, 9)));
}

TEST(CurveTest, AJobThatGoesBackRemovesWhatIsAfterItsStep) {
  Curve curve({At(2, 1), At(4, 1), At(6, 1)}, 2);
  curve.Add(At(7, 1));
  curve.GoBack(4);
  EXPECT_THAT(curve.Points(), ::testing::ElementsAre(At(2, 1), At(4, 1)));
  curve.GoBack(1);
  EXPECT_TRUE(curve.Points().empty());
}

TEST(CurveTest, ACurveGoesOnWithItsStride) {
  Curve curve({At(10, 1)}, 2);
  curve.Add(At(11, 2));
  EXPECT_THAT(curve.Points(), ::testing::ElementsAre(At(10, 1), At(11, 2)));
  curve.Add(At(12, 4));
  EXPECT_THAT(curve.Points(), ::testing::ElementsAre(At(10, 1), At(12, 3)));
}

TEST(CurveTest, NonFiniteValuesAreLeftOut) {
  Curve curve;
  curve.Add(At(1, std::nan("")));
  curve.Add(At(2, INFINITY));
  EXPECT_TRUE(curve.Points().empty());
}

}  // namespace
}  // namespace lockstep::chief
