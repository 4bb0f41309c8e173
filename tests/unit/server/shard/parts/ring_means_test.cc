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
                            MeanOutcome* outcome = nullptr,
                            const RingPlace& place = {0, kElements}) {
  std::vector<float> mean(static_cast<size_t>(part.count));
  const MeanOutcome stored = StoreRingMean(
      part, place, gradients,
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

// The places of variables that are all trained.
std::vector<RingPlace> PlacesOf(int64_t bytes_per_pack,
                                const std::vector<VariableSpec>& variables) {
  return RingPlacesOf(bytes_per_pack, variables,
                      std::vector<VariableSettings>(variables.size()));
}

auto IsPlace(int64_t offset, int64_t elements) {
  return ::testing::AllOf(::testing::Field(&RingPlace::offset, offset),
                          ::testing::Field(&RingPlace::elements, elements));
}

// As the collectives reduce several values at once, with TensorFlow's packs.
TEST(RingMeansTest, VariablesOfAPackHaveTheBitsOfOneRing) {
  const std::vector<size_t> sizes = {60, 100, 7, 33};
  std::vector<VariableSpec> variables;
  for (const size_t size : sizes) {
    variables.push_back({.shape = {static_cast<int64_t>(size)}});
  }
  for (const int64_t bytes_per_pack : {0, 1, 140, 4000}) {
    std::vector<std::vector<Value>> by_rank(3);
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      for (const size_t size : sizes) {
        by_rank[rank].push_back(Value::Of<float>(ElementType::kFloat32,
                                                 {static_cast<int64_t>(size)},
                                                 NumbersOf(rank, size)));
      }
    }
    const auto packed =
        ReducePacked(ReduceOp::kMean, SumOrder::kRing, by_rank, bytes_per_pack);
    ASSERT_THAT(packed, testing::IsOk());
    const std::vector<RingPlace> places = PlacesOf(bytes_per_pack, variables);
    for (size_t v = 0; v < sizes.size(); ++v) {
      PartSpec part;
      part.count = static_cast<int64_t>(sizes[v]);
      std::vector<PartGradient> gradients;
      for (size_t rank = 0; rank < by_rank.size(); ++rank) {
        gradients.push_back(GradientOf(NumbersOf(rank, sizes[v])));
      }
      EXPECT_EQ(RingMean(part, gradients, nullptr, places[v]),
                (*packed)[v].Elements<float>())
          << v << " of packs of " << bytes_per_pack;
    }
  }
}

TEST(RingPlacesTest, OnlyWhatIsTrainedIsPacked) {
  std::vector<VariableSpec> variables(5, {.shape = {2, 5}});
  variables[1].buffer = true;
  variables[2].row_cut = RowCut::kDiv;
  std::vector<VariableSettings> settings(5);
  settings[3].trained = false;

  EXPECT_THAT(
      RingPlacesOf(0, variables, settings),
      ::testing::ElementsAre(IsPlace(10, 20), IsPlace(0, 10), IsPlace(0, 10),
                             IsPlace(0, 10), IsPlace(0, 20)));
  EXPECT_THAT(PlacesOf(-1, variables), ::testing::Each(IsPlace(0, 10)));
}

TEST(RingPlacesTest, APackHasOneElementType) {
  std::vector<VariableSpec> variables(3, {.shape = {4}});
  variables[0].dtype = DType::kFloat64;

  EXPECT_THAT(
      PlacesOf(0, variables),
      ::testing::ElementsAre(IsPlace(0, 4), IsPlace(4, 8), IsPlace(0, 8)));
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
      StoreRingMean(part, {0, kElements}, gradients, absl::MakeSpan(mean),
                    false);
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
