#include "worker/loop/gradient_clipping.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::IsNan;

constexpr DType kFloat = DType::kFloat32;

absl::Span<std::byte> Bytes(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

// TensorFlow's own case: two gradients whose norm is 5.
class GradientClippingTest : public ::testing::Test {
 protected:
  double Norm() {
    const absl::Span<const std::byte> spans[] = {Bytes(x0_), Bytes(x1_)};
    return GlobalNorm(kFloat, spans);
  }
  void Clip(double clip_norm) {
    const absl::Span<std::byte> spans[] = {Bytes(x0_), Bytes(x1_)};
    ClipByGlobalNorm(kFloat, clip_norm, Norm(), spans);
  }

  std::vector<float> x0_ = {-2, 0, 0, 4, 0, 0};
  std::vector<float> x1_ = {1, -2};
};

TEST_F(GradientClippingTest, NormIsThatOfAllGradientsTogether) {
  EXPECT_EQ(Norm(), 5);
  EXPECT_EQ(GlobalNorm(kFloat, {}), 0);
}

TEST_F(GradientClippingTest, LongGradientsAreScaledTogether) {
  Clip(4);
  EXPECT_THAT(x0_, ElementsAre(FloatEq(-1.6f), 0, 0, FloatEq(3.2f), 0, 0));
  EXPECT_THAT(x1_, ElementsAre(FloatEq(0.8f), FloatEq(-1.6f)));
}

TEST_F(GradientClippingTest, BFloat16IsClippedInFloat32AndRounded) {
  std::vector<BFloat16> x = {ToBFloat16(-3.f), ToBFloat16(4.f)};
  const absl::Span<std::byte> bytes(reinterpret_cast<std::byte*>(x.data()), 4);
  const absl::Span<const std::byte> read[] = {bytes};
  EXPECT_EQ(GlobalNorm(DType::kBFloat16, read), 5);
  const absl::Span<std::byte> write[] = {bytes};
  ClipByGlobalNorm(DType::kBFloat16, 2.5, 5, write);
  EXPECT_EQ(ToFloat(x[0]), -1.5f);
  EXPECT_EQ(ToFloat(x[1]), 2);
  ClipByValue(DType::kBFloat16, 1, bytes);
  EXPECT_EQ(ToFloat(x[0]), -1);
  ClipByNorm(DType::kBFloat16, 100, bytes);
  EXPECT_EQ(ToFloat(x[1]), 1);
}

TEST_F(GradientClippingTest, ShortOnesStay) {
  Clip(6);
  EXPECT_THAT(x1_, ElementsAre(FloatEq(1), FloatEq(-2)));
  x0_.assign(6, 0);
  x1_.assign(2, 0);
  Clip(6);
  EXPECT_THAT(x0_, Each(0));
}

TEST_F(GradientClippingTest, InfiniteNormMakesEverythingNotANumber) {
  x0_[1] = std::numeric_limits<float>::infinity();
  Clip(4);
  EXPECT_THAT(x0_, Each(IsNan()));
  EXPECT_THAT(x1_, Each(IsNan()));
}

TEST_F(GradientClippingTest, NormOfManyElementsIsExactEnough) {
  std::vector<float> many(100003, 0.5f);
  const absl::Span<const std::byte> span = Bytes(many);
  EXPECT_NEAR(GlobalNorm(kFloat, absl::MakeConstSpan(&span, 1)),
              0.5 * std::sqrt(100003), 1e-2);
}

TEST_F(GradientClippingTest, OneGradientIsScaledByItsOwnNorm) {
  std::vector<float> gradient = {3, 4};
  ClipByNorm(kFloat, 1, Bytes(gradient));
  EXPECT_THAT(gradient, ElementsAre(FloatEq(0.6f), FloatEq(0.8f)));
  ClipByNorm(kFloat, 2, Bytes(gradient));
  EXPECT_THAT(gradient, ElementsAre(FloatEq(0.6f), FloatEq(0.8f)));
}

TEST_F(GradientClippingTest, ValuesAreLimitedOneByOne) {
  std::vector<float> gradient = {-3, 0.25f, 3, std::nanf("")};
  ClipByValue(kFloat, 0.5, Bytes(gradient));
  EXPECT_THAT(gradient, ElementsAre(-0.5f, 0.25f, 0.5f, IsNan()));
}

}  // namespace
}  // namespace lockstep::worker
