#include "worker/compute/kernels/elementwise.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/compute/kernels/grid.h"
#include "worker/compute/kernels/activation.h"

namespace lockstep::worker::kernels {
namespace {

using ::testing::ElementsAre;

template <typename F>
void ForEach(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; ++i) f.Target()[i] = f.Value(i);
}

TEST(ElementwiseTest, BiasIsAddedToEachRow) {
  std::vector<float> values = {1, 2, 3, 4};
  const std::vector<float> bias = {10, 20};
  const AddBias<float> add{bias.data(), 2, values.data()};
  Grid(2, 2, add);
  EXPECT_THAT(values, ElementsAre(11, 22, 13, 24));
}

TEST(ElementwiseTest, ReluCutsOffBelowZeroAndKeepsNaN) {
  std::vector<double> values = {-1, 0, 2, std::nan("")};
  ForEach(3, Relu<double>{values.data(), values.data()});
  EXPECT_THAT(std::vector<double>(values.begin(), values.begin() + 3),
              ElementsAre(0, 0, 2));
  EXPECT_TRUE(std::isnan(Relu<double>{values.data(), values.data()}.Value(3)));

  std::vector<double> gradient = {5, 6, 7};
  ForEach(
      3, ReluGradient<double>{values.data(), gradient.data(), gradient.data()});
  EXPECT_THAT(gradient, ElementsAre(0, 0, 7));
}

TEST(ElementwiseTest, TanhIsThatOfTheLibraryAndDoesNotOverflow) {
  for (double x = -25; x <= 25; x += 0.37) {
    EXPECT_NEAR(Tanh(x), std::tanh(x), 1e-14) << x;
  }
  EXPECT_EQ(Tanh(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_EQ(Tanh(-1e30F), -1.0F);
}

template <Activation kind>
void CheckSlope() {
  constexpr double kStep = 1e-6;
  for (double x = -4; x <= 4; x += 0.3) {
    const double at[2] = {x - kStep, x + kStep};
    double out[2];
    ForEach(2, Activate<double, kind>{at, out});
    EXPECT_NEAR((ActivateGradient<double, kind>::Slope(x)),
                (out[1] - out[0]) / (2 * kStep), 1e-8)
        << x;
  }
}

TEST(ElementwiseTest, GradientsAreTheSlopes) {
  CheckSlope<Activation::kGelu>();
  CheckSlope<Activation::kTanh>();
  CheckSlope<Activation::kSigmoid>();
}

TEST(ElementwiseTest, CombineDoesNotReadWhatCountsNothing) {
  const std::vector<float> in = {1, 2};
  std::vector<float> out = {std::nanf(""), 3};
  ForEach(1, Combine<float>{in.data(), 2, 0, out.data()});
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ((Combine<float>{in.data(), 2, 10, out.data()}.Value(1)), 34);
}

TEST(ElementwiseTest, Bfloat16IsTheNearestAndTheEvenOfTwo) {
  const auto of = [](uint32_t bits) {
    float in = 0;
    std::memcpy(&in, &bits, sizeof(in));
    uint16_t out = 0;
    ForEach(1, ToBfloat16{&in, &out});
    return out;
  };
  EXPECT_EQ(of(0x3f800000), 0x3f80);  // 1
  EXPECT_EQ(of(0x3f807fff), 0x3f80);
  EXPECT_EQ(of(0x3f808000), 0x3f80);  // in the middle: the even one
  EXPECT_EQ(of(0x3f818000), 0x3f82);
  EXPECT_EQ(of(0xbf808001), 0xbf81);
  EXPECT_EQ(of(0x7f7fffff), 0x7f80);  // too large: infinity
  EXPECT_EQ(of(0xff800000), 0xff80);  // -infinity
  EXPECT_EQ(of(0x7f800001), 0x7fc0);  // NaN whose lower half alone says so
}

TEST(ElementwiseTest, DropoutKeepsItsShareAndTheMean) {
  constexpr int64_t kCount = 20'000;
  const std::vector<double> in(kCount, 1);
  std::vector<double> out(kCount);
  const Dropout<double> dropout{in.data(), 3, 1U << 30, 1 / 0.75, out.data()};
  ForEach(kCount, dropout);

  double sum = 0;
  int64_t zeros = 0;
  for (const double x : out) {
    sum += x;
    if (x == 0) ++zeros;
  }
  EXPECT_NEAR(static_cast<double>(zeros) / kCount, 0.25, 0.02);
  EXPECT_NEAR(sum / kCount, 1, 0.03);
  // The gradient is dropped with the same key at the same places.
  std::vector<double> again(kCount);
  ForEach(kCount,
          Dropout<double>{in.data(), 3, 1U << 30, 1 / 0.75, again.data()});
  EXPECT_EQ(again, out);
}

TEST(ElementwiseTest, EmbeddingTakesRowsAndAddsTheirGradients) {
  const std::vector<float> table = {0, 1, 10, 11, 20, 21};
  const std::vector<int32_t> ids = {2, 0, 2};
  std::vector<float> out(6);
  const Embed<float> embed{table.data(), ids.data(), 2, out.data()};
  Grid(3, 2, embed);
  EXPECT_THAT(out, ElementsAre(20, 21, 0, 1, 20, 21));

  std::vector<float> gradient(6, -1);
  const EmbedGradient<float> add{ids.data(), 3, 2, out.data(), gradient.data()};
  Grid(3, 2, add);
  EXPECT_THAT(gradient, ElementsAre(0, 1, 0, 0, 40, 42));
}

}  // namespace
}  // namespace lockstep::worker::kernels
