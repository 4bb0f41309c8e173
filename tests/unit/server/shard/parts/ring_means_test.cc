#include "server/shard/parts/ring_means.h"

#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/collective/reduction.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

constexpr size_t kElements = 100;  // of the variable; chunks of 48, 48 and 4

// Numbers whose sum depends on the order.
std::vector<float> NumbersOf(size_t rank, size_t size = kElements) {
  std::vector<float> numbers;
  for (size_t i = 0; i < size; ++i) {
    numbers.push_back(static_cast<float>((i * 7 + rank * 13) % 29) *
                      (rank == 1 ? 0x1p24f : 0.3f));
  }
  return numbers;
}

// The mean of the whole variable, as the collectives compute it, whose rings
// are compared with TensorFlow's.
std::vector<float> MeanInOrder(SumOrder order,
                               const std::vector<std::vector<float>>& ranks) {
  std::vector<Value> values;
  for (const std::vector<float>& rank : ranks) {
    values.push_back(Value::Of<float>(
        ElementType::kFloat32, {static_cast<int64_t>(rank.size())}, rank));
  }
  return Reduce(ReduceOp::kMean, order, values)->Elements<float>();
}

// The gradient of elements [offset, offset + count), in two slices that cut an
// element.
PartGradient PartOf(const std::vector<float>& numbers, size_t offset,
                    size_t count) {
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(offset);
  PartGradient gradient = GradientOf(
      std::vector<float>(first, first + static_cast<std::ptrdiff_t>(count)));
  const ByteSlice whole = gradient.slices[0];
  gradient.slices = {{whole.data, 5}, {whole.data + 5, whole.size - 5}};
  return gradient;
}

std::vector<float> RingMean(const PartSpec& part,
                            const std::vector<PartGradient>& gradients,
                            MeanOutcome* outcome = nullptr) {
  std::vector<float> mean(static_cast<size_t>(part.count));
  const MeanOutcome stored = StoreRingMean(
      part, kElements, gradients,
      {reinterpret_cast<std::byte*>(mean.data()), mean.size() * sizeof(float)},
      outcome != nullptr);
  if (outcome != nullptr) *outcome = stored;
  return mean;
}

TEST(RingMeansTest, PartsHaveTheBitsOfTheRingOverTheirVariable) {
  const std::vector<std::vector<float>> ranks = {NumbersOf(0), NumbersOf(1),
                                                 NumbersOf(2)};
  const std::vector<float> ring = MeanInOrder(SumOrder::kRing, ranks);
  ASSERT_NE(ring, MeanInOrder(SumOrder::kRank, ranks));
  for (const size_t cut : {1, 40, 48, 50, 96, 97, 99}) {
    std::vector<float> joined;
    for (const auto& [offset, count] :
         {std::pair(size_t{0}, cut), std::pair(cut, kElements - cut)}) {
      PartSpec part;
      part.offset = static_cast<int64_t>(offset);
      part.count = static_cast<int64_t>(count);
      std::vector<PartGradient> gradients;
      for (const auto& rank : ranks) {
        gradients.push_back(PartOf(rank, offset, count));
      }
      const std::vector<float> mean = RingMean(part, gradients);
      joined.insert(joined.end(), mean.begin(), mean.end());
    }
    EXPECT_EQ(joined, ring) << cut;
  }
}

TEST(RingMeansTest, AbsentGradientsCountAsZeros) {
  const std::vector<float> zeros(kElements);
  const std::vector<float> expected =
      MeanInOrder(SumOrder::kRing, {NumbersOf(0), zeros, NumbersOf(2)});
  PartSpec part;
  part.count = kElements;
  EXPECT_EQ(
      RingMean(part, {PartOf(NumbersOf(0), 0, kElements), AbsentGradient(),
                      PartOf(NumbersOf(2), 0, kElements)}),
      expected);
}

TEST(RingMeansTest, MeasuresTheWholeMean) {
  PartSpec part;
  part.count = kElements;
  std::vector<PartGradient> gradients = {
      GradientOf(std::vector<float>(kElements, 1)),
      GradientOf(std::vector<float>(kElements, 2)),
      GradientOf(std::vector<float>(kElements, 3))};
  MeanOutcome outcome;
  RingMean(part, gradients, &outcome);
  EXPECT_TRUE(outcome.finite);
  EXPECT_EQ(outcome.squares, 4 * kElements);

  std::vector<float> infinite(kElements, 1);
  infinite[97] = INFINITY;
  gradients[1] = GradientOf(infinite);
  RingMean(part, gradients, &outcome);
  EXPECT_FALSE(outcome.finite);
}

// Small whole numbers, which every type has and whose sums are exact.
float SmallNumber(size_t rank, size_t i) {
  return static_cast<float>((3 * i + 5 * rank) % 32);
}

TEST(RingMeansTest, EveryTypeOfVariableAndGradientIsCutAtElements) {
  constexpr size_t kOffset = 30;
  constexpr size_t kCount = 60;
  const auto expected = [](size_t i) {
    return (SmallNumber(0, i) + SmallNumber(1, i) + SmallNumber(2, i)) / 3;
  };
  for (const DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    for (const bool packed : {false, true}) {
      if (packed && dtype != DType::kFloat32) continue;
      PartSpec part;
      part.offset = kOffset;
      part.count = kCount;
      part.dtype = dtype;
      std::vector<PartGradient> gradients;
      for (size_t rank = 0; rank < 3; ++rank) {
        std::vector<double> doubles;
        std::vector<float> floats;
        std::vector<uint16_t> halves;
        for (size_t i = 0; i < kCount; ++i) {
          const float number = SmallNumber(rank, i);
          doubles.push_back(number);
          floats.push_back(number);
          // A small whole number is the upper half of its float.
          halves.push_back(dtype == DType::kFloat16
                               ? ToFloat16(number).bits
                               : static_cast<uint16_t>(
                                     std::bit_cast<uint32_t>(number) >> 16));
        }
        gradients.push_back(packed ? BFloat16GradientOf(halves)
                            : dtype == DType::kFloat64 ? GradientOf(doubles)
                            : dtype == DType::kFloat32 ? GradientOf(floats)
                                                       : GradientOf(halves));
      }
      std::vector<std::byte> mean(MeanSize(dtype, kCount));
      StoreRingMean(part, kElements, gradients, absl::MakeSpan(mean), false);
      for (size_t i = 0; i < kCount; ++i) {
        const double got = dtype == DType::kFloat64 ? FromBytes<double>(mean)[i]
                           : dtype == DType::kFloat16
                               ? ToFloat(Float16{FromBytes<uint16_t>(mean)[i]})
                               : FromBytes<float>(mean)[i];
        EXPECT_NEAR(got, expected(i), dtype == DType::kFloat16 ? 2e-2 : 1e-5)
            << std::string(DTypeName(dtype)) << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::server
