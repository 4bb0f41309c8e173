#include "server/state/init/initializer.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

absl::Status FillInitialValues(const VariableSpec& spec, uint64_t seed,
                               int64_t offset, absl::Span<std::byte> values) {
  const auto initial = InitialValues::Make(spec, seed);
  return initial.ok() ? initial->Fill(offset, values) : initial.status();
}

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

using Kind = Initializer::Kind;

template <typename T>
absl::Span<std::byte> Bytes(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

VariableSpec Spec(Kind kind, double a, double b,
                  std::vector<int64_t> shape = {200, 500}) {
  return {"w", std::move(shape), DType::kFloat32, {kind, a, b}};
}

std::vector<float> Fill(const VariableSpec& spec, uint64_t seed, int64_t offset,
                        size_t count) {
  std::vector<float> values(count);
  EXPECT_OK(FillInitialValues(spec, seed, offset, Bytes(values)));
  return values;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - (sum / n) * (sum / n))};
}

TEST(InitializerTest, ConstantIsTheSameEverywhere) {
  EXPECT_THAT(Fill(Spec(Kind::kConstant, 0.5, 7), 1, 10, 100), Each(0.5f));
}

TEST(InitializerTest, AnyCutHasTheSameBits) {
  for (const Kind kind :
       {Kind::kUniform, Kind::kNormal, Kind::kGlorotUniform, Kind::kHeNormal,
        Kind::kTruncatedNormal, Kind::kGlorotNormal, Kind::kHeUniform}) {
    const VariableSpec spec = Spec(kind, -1, 1);
    const std::vector<float> whole = Fill(spec, 42, 0, 1000);
    for (const int64_t offset : {0, 1, 333, 990}) {
      const std::vector<float> part = Fill(spec, 42, offset, 10);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + offset));
    }
  }
}

TEST(InitializerTest, SeedAndNameEachChangeTheValues) {
  const VariableSpec spec = Spec(Kind::kUniform, 0, 1);
  VariableSpec other = spec;
  other.name = "v";

  const std::vector<float> values = Fill(spec, 1, 0, 100);

  EXPECT_EQ(Fill(spec, 1, 0, 100), values);
  EXPECT_NE(Fill(spec, 2, 0, 100), values);
  EXPECT_NE(Fill(other, 1, 0, 100), values);
}

TEST(InitializerTest, UniformFillsItsRange) {
  const std::vector<float> values =
      Fill(Spec(Kind::kUniform, -2, 6), 1, 0, 100000);

  EXPECT_THAT(values, Each(::testing::AllOf(::testing::Ge(-2.0f),
                                            ::testing::Lt(6.0f))));
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 2, 0.03);
  EXPECT_NEAR(moments.deviation, 8 / std::sqrt(12.0), 0.03);
}

TEST(InitializerTest, UniformNeverRoundsUpToItsEnd) {
  // There is no float32 between 1 and 1 + 2^-23.
  const std::vector<float> values =
      Fill(Spec(Kind::kUniform, 1, 1 + 0x1p-23), 1, 0, 1000);

  EXPECT_THAT(values, Each(1.0f));
}

TEST(InitializerTest, NormalHasItsMeanAndDeviation) {
  const Moments moments =
      MomentsOf(Fill(Spec(Kind::kNormal, 3, 0.5), 1, 0, 100000));

  EXPECT_NEAR(moments.mean, 3, 0.01);
  EXPECT_NEAR(moments.deviation, 0.5, 0.01);
}

TEST(InitializerTest, GlorotUniformFollowsBothFans) {
  const double limit = std::sqrt(6.0 / 700);
  const std::vector<float> values =
      Fill(Spec(Kind::kGlorotUniform, 0, 0), 1, 0, 100000);

  EXPECT_THAT(values,
              Each(::testing::AllOf(::testing::Ge(static_cast<float>(-limit)),
                                    ::testing::Lt(static_cast<float>(limit)))));
  EXPECT_NEAR(MomentsOf(values).deviation, limit / std::sqrt(3.0), 0.001);
}

TEST(InitializerTest, HeNormalFollowsTheFanIn) {
  const Moments moments =
      MomentsOf(Fill(Spec(Kind::kHeNormal, 0, 0), 1, 0, 100000));

  EXPECT_NEAR(moments.mean, 0, 0.001);
  EXPECT_NEAR(moments.deviation, 0.1, 0.001);
}

TEST(InitializerTest, TruncatedNormalStaysWithinTwoDeviations) {
  const std::vector<float> values =
      Fill(Spec(Kind::kTruncatedNormal, 1, 0.5), 1, 0, 100000);

  EXPECT_THAT(values,
              Each(::testing::AllOf(::testing::Ge(0.0f), ::testing::Le(2.0f))));
  EXPECT_NEAR(MomentsOf(values).mean, 1, 0.01);
  EXPECT_NEAR(MomentsOf(values).deviation, 0.5 * 0.8796, 0.005);
}

TEST(InitializerTest, GlorotNormalAndHeUniformFollowTheirFans) {
  EXPECT_NEAR(
      MomentsOf(Fill(Spec(Kind::kGlorotNormal, 0, 0), 1, 0, 100000)).deviation,
      std::sqrt(2.0 / 700), 0.001);
  EXPECT_NEAR(
      MomentsOf(Fill(Spec(Kind::kHeUniform, 0, 0), 1, 0, 100000)).deviation,
      std::sqrt(2.0 / 200), 0.001);
}

TEST(InitializerTest, OrthogonalMatrixIsTheSameHoweverItIsCut) {
  const VariableSpec spec = Spec(Kind::kOrthogonal, 2, 0, {3, 2, 4});
  const std::vector<float> whole = Fill(spec, 1, 0, 24);

  EXPECT_EQ(Fill(spec, 1, 5, 7),
            std::vector<float>(whole.begin() + 5, whole.begin() + 12));
  EXPECT_NE(Fill(spec, 2, 0, 24), whole);
  double square = 0;
  for (int row = 0; row < 6; ++row) {
    square += static_cast<double>(whole[row * 4]) * whole[row * 4];
  }
  EXPECT_NEAR(square, 4, 1e-5);
}

TEST(InitializerTest, OrthogonalVectorOrTooLargeMatrixIsRefused) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5}, std::vector<int64_t>{1 << 12, 1 << 11}}) {
    EXPECT_THAT(
        InitialValues::Make(Spec(Kind::kOrthogonal, 1, 0, shape), 1),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("variable w has shape " + ShapeString(shape) +
                           "; an orthogonal matrix needs")));
  }
}

TEST(InitializerTest, Float64RoundsToTheFloat32Values) {
  VariableSpec spec = Spec(Kind::kNormal, 0, 1);
  const std::vector<float> singles = Fill(spec, 5, 0, 100);
  spec.dtype = DType::kFloat64;
  std::vector<double> doubles(100);

  ASSERT_OK(FillInitialValues(spec, 5, 0, Bytes(doubles)));

  for (size_t i = 0; i < doubles.size(); ++i) {
    EXPECT_EQ(static_cast<float>(doubles[i]), singles[i]);
  }
}

TEST(InitializerTest, FansAreTensorFlows) {
  const auto expect = [](const std::vector<int64_t>& shape, double in,
                         double out) {
    EXPECT_EQ(ComputeFans(shape).in, in);
    EXPECT_EQ(ComputeFans(shape).out, out);
  };
  expect({}, 1, 1);
  expect({7}, 7, 7);
  expect({784, 128}, 784, 128);
  expect({5, 3, 16, 32}, 5 * 3 * 16, 5 * 3 * 32);
}

TEST(InitializerTest, RangeOutsideTheVariableIsRefused) {
  const VariableSpec spec = Spec(Kind::kUniform, 0, 1, {2, 3});
  std::vector<float> values(4, -1.0f);
  for (const int64_t offset : {int64_t{-1}, int64_t{3}, int64_t{7},
                               std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(FillInitialValues(spec, 1, offset, Bytes(values)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variable w: elements " +
                                   std::to_string(offset) + " and 4 ")));
  }
  EXPECT_THAT(values, Each(-1.0f));
}

TEST(InitializerTest, MisalignedOrTornMemoryIsRefused) {
  const VariableSpec spec = Spec(Kind::kUniform, 0, 1);
  std::vector<float> values(4);
  const absl::Span<std::byte> bytes = Bytes(values);

  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("are needed for whole elements"));
  EXPECT_THAT(FillInitialValues(spec, 1, 0, bytes.subspan(1, 8)), refused);
  EXPECT_THAT(FillInitialValues(spec, 1, 0, bytes.subspan(0, 7)), refused);
  EXPECT_THAT(values, Each(0.0f));
}

TEST(InitializerTest, Float16IsTheSameRoundedAndStaysBelowTheEnd) {
  VariableSpec spec = Spec(Kind::kUniform, -1, 1, {100, 500});
  spec.dtype = DType::kFloat16;
  std::vector<Float16> halves(50000);
  ASSERT_OK(FillInitialValues(spec, 1, 0, Bytes(halves)));
  spec.dtype = DType::kFloat64;
  std::vector<double> doubles(50000);
  ASSERT_OK(FillInitialValues(spec, 1, 0, Bytes(doubles)));

  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_NEAR(ToFloat(halves[i]), doubles[i], 0x1p-11) << i;
    ASSERT_LT(ToFloat(halves[i]), 1) << i;
  }
}

TEST(InitializerTest, BFloat16IsTheSameRoundedAndStaysBelowTheEnd) {
  VariableSpec spec = Spec(Kind::kUniform, -1, 1, {100, 500});
  spec.dtype = DType::kBFloat16;
  std::vector<BFloat16> halves(50000);
  ASSERT_OK(FillInitialValues(spec, 1, 0, Bytes(halves)));
  spec.dtype = DType::kFloat64;
  std::vector<double> doubles(50000);
  ASSERT_OK(FillInitialValues(spec, 1, 0, Bytes(doubles)));

  for (size_t i = 0; i < halves.size(); ++i) {
    ASSERT_NEAR(ToFloat(halves[i]), doubles[i], 0x1p-8) << i;
    ASSERT_LT(ToFloat(halves[i]), 1) << i;
  }
}

TEST(InitializerTest, BFloat16IsRoundedOnce) {
  // Above the middle of two bfloat16, but not of their float32.
  VariableSpec spec = Spec(Kind::kConstant, 1 + 0x1p-8 + 0x1p-40, 0, {1});
  spec.dtype = DType::kBFloat16;
  std::vector<BFloat16> value(1);

  ASSERT_OK(FillInitialValues(spec, 1, 0, Bytes(value)));

  EXPECT_EQ(value[0].bits, 0x3f81);
}

TEST(InitializerTest, RowsOfAGrowingTableFollowFromTheirKeysAlone) {
  VariableSpec table = Spec(Kind::kUniform, -1, 1, {4, 3});
  table.row_cut = RowCut::kKey;
  const auto row = [&](uint64_t seed, int64_t key) {
    std::vector<float> values(3);
    EXPECT_OK(InitialValues::Make(table, seed)->FillRow(key, Bytes(values)));
    return values;
  };
  const std::vector<float> first = row(1, 5);
  EXPECT_EQ(row(1, 5), first);
  EXPECT_NE(row(2, 5), first);
  // Keys that a range of rows has no numbers for, in any arithmetic.
  for (const int shift : {0, 10, 60, 61, 62}) {
    EXPECT_NE(row(1, (int64_t{1} << shift) + 5), first) << shift;
  }
  table.shape[0] = 400;
  EXPECT_EQ(row(1, 5), first);
  table.name = "v";
  EXPECT_NE(row(1, 5), first);
}

TEST(InitializerTest, RowIsRefusedIfItsSizeOrInitializerDoesNotFit) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  std::vector<float> values(3);
  const auto fill = [&](const VariableSpec& spec) {
    return InitialValues::Make(spec, 1)->FillRow(5, Bytes(values));
  };
  EXPECT_THAT(fill(Spec(Kind::kUniform, -1, 1, {4, 2})), invalid);
  EXPECT_THAT(fill(Spec(Kind::kUniform, -1, 1, {})), invalid);
  EXPECT_THAT(fill(Spec(Kind::kOrthogonal, 1, 0, {4, 3})), invalid);
  EXPECT_OK(fill(Spec(Kind::kUniform, -1, 1, {4, 3})));
}

}  // namespace
}  // namespace lockstep::server
