#include "server/update/mean_norm.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;

template <typename T>
absl::Span<std::byte> BytesOf(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

// A gradient of `values`, in two slices.
template <typename T>
struct Gradient {
  explicit Gradient(std::vector<T> of) : values(std::move(of)) {
    const absl::Span<std::byte> bytes = BytesOf(values);
    const size_t cut = bytes.size() / 3;
    slices = {{bytes.data(), cut}, {bytes.data() + cut, bytes.size() - cut}};
  }
  GradientSlices Slices() const { return {slices, GradientType::kVariable}; }

  std::vector<T> values;
  std::vector<ByteSlice> slices;
};

TEST(MeanNormTest, MeanIsStoredAndMeasured) {
  const Gradient<float> a({1, 2, 3, -5});
  const Gradient<float> b({3, 2, 1, 0});
  std::vector<float> mean(4);

  const MeanOutcome outcome = StoreMean(
      DType::kFloat32, std::vector{a.Slices(), b.Slices()}, 2, BytesOf(mean));

  EXPECT_THAT(mean, ElementsAre(2, 2, 2, -2.5f));
  EXPECT_TRUE(outcome.finite);
  EXPECT_EQ(outcome.squares, 4 + 4 + 4 + 6.25);
}

TEST(MeanNormTest, AbsentGradientsCountInTheDivisorAlone) {
  const Gradient<double> only({8, -4});
  std::vector<double> mean(2);

  const MeanOutcome outcome =
      StoreMean(DType::kFloat64, std::vector{only.Slices()}, 4, BytesOf(mean));

  EXPECT_THAT(mean, ElementsAre(2, -1));
  EXPECT_EQ(outcome.squares, 5);
}

TEST(MeanNormTest, NonFiniteMeanIsTold) {
  for (const float bad : {NAN, INFINITY}) {
    const Gradient<float> gradient({1, bad});
    std::vector<float> mean(2);
    EXPECT_FALSE(StoreMean(DType::kFloat32, std::vector{gradient.Slices()}, 1,
                           BytesOf(mean))
                     .finite);
  }
}

TEST(MeanNormTest, NonFiniteMeanIsToldInEveryType) {
  const Gradient<double> doubles({1, -INFINITY});
  std::vector<double> double_mean(2);
  EXPECT_FALSE(StoreMean(DType::kFloat64, std::vector{doubles.Slices()}, 1,
                         BytesOf(double_mean))
                   .finite);
  // Their sum is above the largest float16.
  const Gradient<Float16> half({ToFloat16(1.0f), ToFloat16(60000.0f)});
  std::vector<Float16> half_mean(2);
  EXPECT_TRUE(StoreMean(DType::kFloat16, std::vector{half.Slices()}, 1,
                        BytesOf(half_mean))
                  .finite);
  EXPECT_FALSE(StoreMean(DType::kFloat16,
                         std::vector{half.Slices(), half.Slices()}, 2,
                         BytesOf(half_mean))
                   .finite);
  for (const uint16_t bad : {0x7f80, 0xff80, 0x7fc0}) {
    const Gradient<uint16_t> brain({0x3f80, bad});
    std::vector<float> mean(2);
    EXPECT_FALSE(StoreMean(DType::kBFloat16, std::vector{brain.Slices()}, 1,
                           BytesOf(mean))
                     .finite)
        << bad;
  }
}

TEST(MeanNormTest, SumOfAStoredMeanIsThatOfItsElementsWhateverTheBlocks) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(100'003);
  for (float& value : values) value = normal(random);
  double plain = 0;
  for (const float value : values) plain += double{value} * value;
  const Gradient<float> gradient(values);
  std::vector<float> mean(values.size());

  const double stored =
      StoreMean(DType::kFloat32, std::vector{gradient.Slices()}, 1,
                BytesOf(mean))
          .squares;

  EXPECT_EQ(stored, SumOfSquares(DType::kFloat32, BytesOf(values)));
  EXPECT_NEAR(stored, plain, plain * 1e-12);
}

TEST(MeanNormTest, SquaresOfLargeFloatsDoNotOverflow) {
  std::vector<float> values(3, std::numeric_limits<float>::max());

  const double squares = SumOfSquares(DType::kFloat32, BytesOf(values));

  EXPECT_TRUE(std::isfinite(squares));
  EXPECT_EQ(squares, 3 * double{values[0]} * values[0]);
}

TEST(MeanNormTest, BFloat16IsAveragedInFloat32) {
  // 1 and 1 + 2^-7, the next bfloat16.
  const Gradient<uint16_t> a({0x3f80});
  const Gradient<uint16_t> b({0x3f81});
  std::vector<float> mean(1);

  StoreMean(DType::kBFloat16, std::vector{a.Slices(), b.Slices()}, 2,
            BytesOf(mean));

  EXPECT_EQ(MeanType(DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(MeanSize(DType::kBFloat16, 5), 20U);
  EXPECT_EQ(mean[0], 1 + 1.0f / 256);
}

TEST(MeanNormTest, ElementsAreScaledAndRoundedOnce) {
  std::vector<float> floats = {3, -0.1f};
  ScaleElements(DType::kFloat32, 0.3, BytesOf(floats));
  EXPECT_THAT(floats, ElementsAre(3 * 0.3f, -0.1f * 0.3f));

  std::vector<Float16> halves = {ToFloat16(3.0f)};
  ScaleElements(DType::kFloat16, 1e-3, BytesOf(halves));
  EXPECT_EQ(ToFloat(halves[0]), ToFloat(ToFloat16(3 * 1e-3f)));

  std::vector<double> doubles = {0.1};
  ScaleElements(DType::kFloat64, 1.0 / 3, BytesOf(doubles));
  EXPECT_EQ(doubles[0], 0.1 * (1.0 / 3));

  std::vector<uint16_t> brains = {0x4040};  // 3
  ScaleElements(DType::kBFloat16, 0.5, BytesOf(brains));
  EXPECT_EQ(brains[0], 0x3fc0);  // 1.5
}

// clip_coef of torch.nn.utils.clip_grad_norm_.
TEST(MeanNormTest, ScaleIsThatOfTorch) {
  EXPECT_EQ(ClippingScale(1, 0), 1);
  EXPECT_EQ(ClippingScale(2, 1.5), 1);
  EXPECT_EQ(ClippingScale(1, 4), 1 / (4 + 1e-6));
  EXPECT_EQ(ClippingScale(1, 1), 1 / (1 + 1e-6));
  EXPECT_EQ(ClippingScale(1, INFINITY), 0);
  EXPECT_TRUE(std::isnan(ClippingScale(1, NAN)));
}

}  // namespace
}  // namespace lockstep::server
