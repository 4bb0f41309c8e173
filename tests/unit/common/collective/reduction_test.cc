#include "common/collective/reduction.h"

#include "common/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Value Floats(const std::vector<float>& elements) {
  return Value::Of<float>(ElementType::kFloat32,
                          {static_cast<int64_t>(elements.size())}, elements);
}
Value BFloats(const std::vector<float>& elements) {
  std::vector<BFloat16> rounded;
  for (const float element : elements) rounded.push_back(ToBFloat16(element));
  return Value::Of<BFloat16>(ElementType::kBFloat16,
                             {static_cast<int64_t>(rounded.size())}, rounded);
}
Value Ints(const std::vector<int32_t>& elements) {
  return Value::Of<int32_t>(ElementType::kInt32,
                            {static_cast<int64_t>(elements.size())}, elements);
}

// Chunk 1 begins with the value of rank 1.
TEST(ReductionTest, ARingAddsEachChunkFromItsOwnRankOn) {
  std::vector<float> large(33, 0x1p24f), one(33, 1);
  const Value ring = *Reduce(ReduceOp::kSum, SumOrder::kRing,
                             {Floats(large), Floats(one), Floats(one)});
  EXPECT_EQ(ring.Elements<float>()[0], 0x1p24f);
  EXPECT_EQ(ring.Elements<float>()[16], 0x1p24f + 2);
  EXPECT_EQ(ring.Elements<float>()[32], 0x1p24f);
  const Value rank = *Reduce(ReduceOp::kSum, SumOrder::kRank,
                             {Floats(large), Floats(one), Floats(one)});
  EXPECT_EQ(rank.Elements<float>()[16], 0x1p24f);
}

// In bfloat16, 256 + 1 is 256, and 256 + 2 is 258.
TEST(ReductionTest, EachAdditionOfBFloat16IsRounded) {
  const std::vector<float> large(33, 256), one(33, 1);
  const std::vector<Value> ranks = {BFloats(large), BFloats(one), BFloats(one)};
  for (const SumOrder order : {SumOrder::kRank, SumOrder::kRing}) {
    const Value sum = *Reduce(ReduceOp::kSum, order, ranks);
    EXPECT_EQ(ToFloat(sum.Elements<BFloat16>()[0]), 256);
    const Value mean = *Reduce(ReduceOp::kMean, order, ranks);
    EXPECT_EQ(ToFloat(mean.Elements<BFloat16>()[0]), 85.5f);
  }
  // Chunk 1 of a ring begins with the value of rank 1.
  const Value ring = *Reduce(ReduceOp::kSum, SumOrder::kRing, ranks);
  EXPECT_EQ(ToFloat(ring.Elements<BFloat16>()[32]), 258);
}

TEST(ReductionTest, TheMeanOfIntegersIsAFloat) {
  EXPECT_EQ(*Reduce(ReduceOp::kMean, SumOrder::kRank, {Ints({1}), Ints({2})}),
            Value::Of<double>(ElementType::kFloat64, {1}, {1.5}));
  EXPECT_EQ(*Reduce(ReduceOp::kMean, SumOrder::kRank, {Ints({1})}), Ints({1}));
  EXPECT_EQ(
      *Reduce(ReduceOp::kMean, SumOrder::kRing, {Floats({1}), Floats({2})}),
      Floats({1.5f}));
}

TEST(ReductionTest, EveryIntegerHasSumsAndMeans) {
  const Value bytes = Value::Of<uint8_t>(ElementType::kUint8, {2}, {200, 1});
  EXPECT_EQ(*Reduce(ReduceOp::kSum, SumOrder::kRing, {bytes, bytes}),
            Value::Of<uint8_t>(ElementType::kUint8, {2}, {144, 2}));
  // TensorFlow's types of means, and its float32 quotients.
  EXPECT_EQ(Mean(Value::Of<int8_t>(ElementType::kInt8, {1}, {-3}), 2),
            Floats({-1.5f}));
  EXPECT_EQ(Mean(Value::Of<uint8_t>(ElementType::kUint8, {1}, {255}), 3),
            Floats({85}));
  EXPECT_EQ(Mean(Value::Of<int16_t>(ElementType::kInt16, {1}, {-1}), 3),
            Floats({-1.0f / 3}));
  EXPECT_EQ(Mean(Value::Of<uint16_t>(ElementType::kUint16, {1}, {65535}), 2),
            Floats({32767.5f}));
  EXPECT_EQ(Mean(Value::Of<uint32_t>(ElementType::kUint32, {1}, {1u << 31}), 2),
            Value::Of<double>(ElementType::kFloat64, {1}, {0x1p30}));
  EXPECT_EQ(
      Mean(Value::Of<uint64_t>(ElementType::kUint64, {1}, {uint64_t{1} << 63}),
           2),
      Value::Of<double>(ElementType::kFloat64, {1}, {0x1p62}));
}

TEST(ReductionTest, BoolsAreNotAdded) {
  const auto refused = StatusIs(kInvalid, HasSubstr("bool cannot be added"));
  const Value flags = Value::Of<uint8_t>(ElementType::kBool, {2}, {1, 0});
  EXPECT_THAT(Reduce(ReduceOp::kSum, SumOrder::kRank, {flags, flags}), refused);
  EXPECT_THAT(Reduce(ReduceOp::kMean, SumOrder::kRing, {flags, flags}),
              refused);
  EXPECT_THAT(SumAlong(flags, 0), refused);
  const Slices rows = {{0, 1}, flags, {}};
  EXPECT_THAT(ReduceSlices(ReduceOp::kMean, {rows, rows}), refused);
}

TEST(ReductionTest, ValuesThatDifferAreRefused) {
  EXPECT_THAT(Reduce(ReduceOp::kSum, SumOrder::kRank, {}), StatusIs(kInvalid));
  EXPECT_THAT(
      Reduce(ReduceOp::kSum, SumOrder::kRing, {Floats({1}), Floats({1, 2})}),
      StatusIs(kInvalid, HasSubstr("rank 1 has float32 [2]")));
  EXPECT_THAT(Reduce(ReduceOp::kSum, SumOrder::kRank, {Floats({1}), Ints({1})}),
              StatusIs(kInvalid));
}

TEST(ReductionTest, ElementsThatAreNotThoseOfTheShapeAreNotRead) {
  const auto refused =
      StatusIs(kInvalid, HasSubstr("a value of shape [4] has 2 elements"));
  const Value two = Value::Of<float>(ElementType::kFloat32, {4}, {1, 2});
  const Value four = Floats({1, 2, 3, 4});
  for (const SumOrder order : {SumOrder::kRank, SumOrder::kRing}) {
    EXPECT_THAT(Reduce(ReduceOp::kSum, order, {two, four}), refused);
    EXPECT_THAT(Reduce(ReduceOp::kMean, order, {four, two}), refused);
    EXPECT_THAT(ReducePacked(ReduceOp::kSum, order, {{two}, {four}}, 0),
                refused);
  }
  EXPECT_THAT(SumAlong(two, 0), refused);
  EXPECT_THAT(ReduceSlices(ReduceOp::kSum, {Slices{{0, 1, 2, 3}, four, {}},
                                            Slices{{0, 1, 2, 3}, two, {}}}),
              refused);
}

// Alone, neither value has a second chunk; in one pack the first does.
TEST(ReductionTest, ChunksRunAcrossTheValuesOfAPack) {
  const std::vector<float> large(16, 0x1p24f), one(16, 1);
  const std::vector<Value> big = {Floats(large), Floats(large)};
  const std::vector<Value> small = {Floats(one), Floats(one)};
  const auto elements = [&](int64_t bytes_per_pack) {
    const std::vector<Value> sums = *ReducePacked(
        ReduceOp::kSum, SumOrder::kRing, {big, small, small}, bytes_per_pack);
    return std::vector<float>{sums[0].Elements<float>()[0],
                              sums[1].Elements<float>()[0]};
  };
  EXPECT_THAT(elements(0), ElementsAre(0x1p24f + 2, 0x1p24f));
  EXPECT_THAT(elements(1), ElementsAre(0x1p24f, 0x1p24f));
  EXPECT_THAT(elements(64), ElementsAre(0x1p24f + 2, 0x1p24f));
}

TEST(ReductionTest, APackHasOneType) {
  const std::vector<Value> both = {Floats({1}), Ints({1})};
  EXPECT_THAT(
      ReducePacked(ReduceOp::kSum, SumOrder::kRank, {both, both}, 0),
      StatusIs(kInvalid, HasSubstr("a pack has int32 [1] and float32 [1]")));
  EXPECT_THAT(
      ReducePacked(ReduceOp::kSum, SumOrder::kRank, {both, {Floats({1})}}, 0),
      StatusIs(kInvalid, HasSubstr("one rank has 2 values, another 1")));
}

TEST(ReductionTest, RowsOfSlicesAreJoined) {
  const Slices a = {{1}, Floats({2}), {{4}}}, b = {{1, 0}, Floats({4, 6}), {}};
  const Slices mean = *ReduceSlices(ReduceOp::kMean, {a, b});
  EXPECT_THAT(mean.indices, ElementsAre(1, 1, 0));
  EXPECT_EQ(mean.values, Floats({1, 2, 3}));
  EXPECT_EQ(mean.dense_shape, a.dense_shape);
}

// Together they have as many rows as indices.
TEST(ReductionTest, SlicesWithoutARowForEachIndexAreRefused) {
  EXPECT_THAT(ReduceSlices(ReduceOp::kSum, {Slices{{0, 1}, Floats({1}), {}},
                                            Slices{{2}, Floats({2, 3}), {}}}),
              StatusIs(kInvalid, HasSubstr("slices have 2 indices")));
}

TEST(ReductionTest, SumsAlongAnAxis) {
  const Value value =
      Value::Of<int32_t>(ElementType::kInt32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(*SumAlong(value, 0), Ints({5, 7, 9}));
  EXPECT_EQ(*SumAlong(value, -1), Ints({6, 15}));
  EXPECT_THAT(SumAlong(value, 2), StatusIs(kInvalid));
}

// In bfloat16, 256 + 1 is 256.
TEST(ReductionTest, ASumOfBFloat16AlongAnAxisIsRoundedAtTheEnd) {
  const Value sum = *SumAlong(BFloats({256, 1, 1}), 0);
  EXPECT_EQ(ToFloat(sum.Elements<BFloat16>()[0]), 258);
}

TEST(ReductionTest, OperationsHaveNames) {
  EXPECT_THAT(ParseReduceOp("SUM"), IsOkAndHolds(ReduceOp::kSum));
  EXPECT_THAT(ParseReduceOp("mean"), IsOkAndHolds(ReduceOp::kMean));
  EXPECT_THAT(ParseReduceOp("median"),
              StatusIs(kInvalid, HasSubstr("\"median\"")));
}

TEST(ReductionTest, AMeanDividesOnce) {
  EXPECT_EQ(Mean(Floats({1}), 3), Floats({1.0f / 3}));
}

}  // namespace
}  // namespace lockstep
