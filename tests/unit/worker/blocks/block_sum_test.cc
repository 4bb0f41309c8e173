#include "worker/blocks/block_sum.h"

#include <cstring>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "common/plan/number_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/update/mean_reader.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

using Floats = std::vector<float>;

absl::Span<std::byte> BytesOf(Floats& floats) {
  return {reinterpret_cast<std::byte*>(floats.data()),
          floats.size() * sizeof(float)};
}

// The gradients of some numbers; empty ones are absent.
std::vector<Floats> Draw(int count, size_t elements, int absent_of_ten) {
  std::mt19937 random(count);
  std::normal_distribution<float> normal;
  std::vector<Floats> gradients;
  for (int i = 0; i < count; ++i) {
    Floats& gradient = gradients.emplace_back();
    if (static_cast<int>(random() % 10) < absent_of_ten) continue;
    for (size_t k = 0; k < elements; ++k) {
      gradient.push_back(std::ldexp(normal(random), random() % 20));
    }
  }
  return gradients;
}

// The sum of consecutive numbers as a worker makes it; empty: absent.
Floats SumOfBlock(absl::Span<const Floats> gradients, size_t elements) {
  BlockSum sum;
  Floats memory;
  bool present = false;
  const int count = static_cast<int>(gradients.size());
  for (int i = 0; i < count; ++i) {
    const bool absent = gradients[i].empty();
    memory = absent ? Floats(elements) : gradients[i];
    present = sum.Add(i, count, DType::kFloat32, BytesOf(memory), absent);
  }
  return present ? memory : Floats();
}

// The sum of the gradients that are not empty, as a server makes it.
Floats SumOnServer(std::vector<Floats> gradients, size_t elements) {
  std::vector<bool> present;
  std::vector<server::ByteSlice> slices;
  for (Floats& each : gradients) {
    present.push_back(!each.empty());
    if (present.back()) {
      slices.push_back({BytesOf(each).data(), BytesOf(each).size()});
    }
  }
  if (slices.empty()) return {};
  std::vector<server::GradientSlices> all;
  for (server::ByteSlice& slice : slices) all.push_back({{&slice, 1}});
  server::MeanReader<float> reader(all, 1, MergesOfPresent(present));
  Floats sum(elements);
  std::memcpy(sum.data(), reader.Next(elements), elements * sizeof(float));
  return sum;
}

TEST(BlockSumTest, AnyBlocksGiveTheBitsOfTheServersSum) {
  constexpr size_t kElements = 37;
  for (int absent_of_ten : {0, 4, 9}) {
    for (int count = 1; count <= 17; ++count) {
      const std::vector<Floats> gradients =
          Draw(count, kElements, absent_of_ten);
      const Floats expected = SumOnServer(gradients, kElements);
      for (int size = 1; size <= count; size *= 2) {
        std::vector<Floats> blocks;
        for (int first = 0; first < count; first += size) {
          blocks.push_back(SumOfBlock(
              absl::MakeConstSpan(gradients).subspan(first, size), kElements));
        }
        EXPECT_EQ(SumOnServer(blocks, kElements), expected)
            << count << " by " << size;
      }
    }
  }
}

TEST(BlockSumTest, OrderMattersToTheBits) {
  // In the order of the numbers this would be 1.
  EXPECT_THAT(SumOfBlock({{1e8f}, {-1e8f}, {1}, {1e-3f}}, 1),
              ElementsAre(1 + 1e-3f));
  EXPECT_THAT(SumOfBlock({{1e8f}, {1}, {-1e8f}, {1}}, 1), ElementsAre(0));
}

TEST(BlockSumTest, SubnormalsCountAsZeros) {
  EXPECT_THAT(SumOfBlock({{1e-40f}, {1e-40f}}, 1), ElementsAre(0));
}

TEST(BlockSumTest, GradientsOfADroppedPassAreForgotten) {
  BlockSum sum;
  Floats memory = {5};
  sum.Add(0, 4, DType::kFloat32, BytesOf(memory), false);
  sum.Reset();
  memory = {1};
  sum.Add(0, 2, DType::kFloat32, BytesOf(memory), false);
  memory = {2};

  EXPECT_TRUE(sum.Add(1, 2, DType::kFloat32, BytesOf(memory), false));

  EXPECT_THAT(memory, ElementsAre(3));
}

TEST(BlockSumTest, TypesThatServersAddInAnotherTypeAreNotAdded) {
  EXPECT_TRUE(BlockSum::MaySum(DType::kFloat16));
  EXPECT_FALSE(BlockSum::MaySum(DType::kBFloat16));
}

}  // namespace
}  // namespace lockstep::worker
