#include "worker/blocks/row_block_sum.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/flush_subnormals.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

TableRows RowsOf(std::vector<int64_t> ids, const std::vector<float>& values) {
  TableRows rows;
  rows.ids = std::move(ids);
  rows.gradients.resize(values.size() * sizeof(float));
  std::memcpy(rows.gradients.data(), values.data(), rows.gradients.size());
  return rows;
}

std::vector<float> FloatsOf(const std::vector<std::byte>& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

TEST(RowBlockSumTest, RowsThatMeetAreAddedAndCounted) {
  RowBlockSum sum;
  EXPECT_EQ(sum.Add(0, 2, DType::kFloat32, RowsOf({1, 4}, {1, 2, 3, 4}), false),
            std::nullopt);

  const auto all =
      sum.Add(1, 2, DType::kFloat32, RowsOf({4, 9}, {10, 20, 5, 6}), false);

  ASSERT_TRUE(all.has_value());
  EXPECT_THAT(all->ids, ElementsAre(1, 4, 9));
  EXPECT_THAT(all->counts, ElementsAre(1, 2, 1));
  EXPECT_THAT(FloatsOf(all->gradients), ElementsAre(1, 2, 13, 24, 5, 6));
}

TEST(RowBlockSumTest, GradientWithoutRowsCountsAndAbsentOnesDoNot) {
  RowBlockSum sum;
  sum.Add(0, 2, DType::kFloat32, {}, /*absent=*/true);
  const auto empty = sum.Add(1, 2, DType::kFloat32, {}, /*absent=*/false);
  ASSERT_TRUE(empty.has_value());
  EXPECT_TRUE(empty->ids.empty());

  sum.Reset();
  sum.Add(0, 2, DType::kFloat32, {}, /*absent=*/true);
  EXPECT_EQ(sum.Add(1, 2, DType::kFloat32, {}, /*absent=*/true), std::nullopt);
}

TEST(RowBlockSumTest, GradientWithoutRowsKeepsTheRowsOfTheOthers) {
  for (int without = 0; without < 4; ++without) {
    RowBlockSum sum;
    std::optional<RowSum> last;
    std::vector<int64_t> ids;
    std::vector<float> values;
    for (int i = 0; i < 4; ++i) {
      TableRows rows;
      if (i != without) {
        const auto value = static_cast<float>(i);
        rows = RowsOf({i}, {value, value});
        ids.push_back(i);
        values.insert(values.end(), 2, value);
      }
      last = sum.Add(i, 4, DType::kFloat32, rows, /*absent=*/false);
    }
    ASSERT_TRUE(last.has_value()) << without;
    EXPECT_EQ(last->ids, ids) << without;
    EXPECT_THAT(last->counts, ElementsAre(1, 1, 1)) << without;
    EXPECT_EQ(FloatsOf(last->gradients), values) << without;
  }
}

// Sums of blocks, added up, have the bits of the sum of all micro-batches.
TEST(RowBlockSumTest, SumsOfBlocksAreInnerNodesOfTheTree) {
  constexpr int kNumbers = 8;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<TableRows> gradients;
  for (int number = 0; number < kNumbers; ++number) {
    std::vector<int64_t> ids;
    std::vector<float> values;
    for (int64_t row = 0; row < 40; ++row) {
      if (random() % 3 == 0) continue;
      ids.push_back(row);
      values.push_back(std::ldexp(normal(random), random() % 20));
    }
    gradients.push_back(RowsOf(ids, values));
  }
  const auto sum_of = [&](int first, int count) {
    RowBlockSum sum;
    std::optional<RowSum> last;
    for (int i = 0; i < count; ++i) {
      last = sum.Add(i, count, DType::kFloat32, gradients[first + i],
                     /*absent=*/false);
    }
    return *last;
  };
  const auto rows_of = [](const RowSum& sum) {
    return server::SparseRows({DType::kFloat32, 1}, sum.ids, sum.gradients,
                              sum.counts);
  };
  const server::FlushSubnormals mode;

  const RowSum whole = sum_of(0, kNumbers);
  server::SparseRows halves =
      rows_of(sum_of(0, 4)).Merged(mode, rows_of(sum_of(4, 4)));

  EXPECT_EQ(halves.indices(), whole.ids);
  EXPECT_EQ(halves.counts(), whole.counts);
  EXPECT_EQ(halves.values(), whole.gradients);
  // The order matters to these numbers.
  server::SparseRows in_order = rows_of(sum_of(0, 1));
  for (int i = 1; i < kNumbers; ++i) {
    in_order = in_order.Merged(mode, rows_of(sum_of(i, 1)));
  }
  EXPECT_NE(in_order.values(), whole.gradients);
}

}  // namespace
}  // namespace lockstep::worker
