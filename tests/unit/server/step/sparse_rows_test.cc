#include "server/step/sparse_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::Decode;
using ::lockstep::testing::Encode;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

using Indices = std::vector<int64_t>;
using Doubles = std::vector<double>;
constexpr DType kType = DType::kFloat32;

SparseRows Rows(size_t width, const Indices& indices, const Doubles& values) {
  return SparseRows({kType, width}, indices, Encode(kType, values));
}

void ExpectRows(SparseRows rows, const Indices& indices,
                const Doubles& values) {
  EXPECT_THAT(rows.indices(), ElementsAreArray(indices));
  EXPECT_THAT(Decode(kType, rows.values()), ElementsAreArray(values));
}

TEST(SparseRowsTest, MergedAddsRowsThatMeetAndKeepsTheOthersInOrder) {
  const FlushSubnormals mode;
  const struct {
    Indices mine;
    Doubles my_values;
    Indices theirs;
    Doubles their_values;
    Indices merged;
    Doubles sums, means;
  } cases[] = {
      {{}, {}, {}, {}, {}, {}, {}},
      {{1, 3}, {1, 3}, {2}, {2}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}},
      {{1, 3}, {1, 3}, {3, 4}, {5, 4}, {1, 3, 4}, {1, 8, 4}, {1, 4, 4}},
      {{7}, {7}, {1, 2}, {1, 2}, {1, 2, 7}, {1, 2, 7}, {1, 2, 7}},
      // Lists that do not ascend, as TensorFlow merges them.
      {{5, 2}, {50, 20}, {2, 5}, {2, 5}, {2, 5, 2}, {2, 55, 20}, {2, 27.5, 20}},
      {{1, 1}, {1, 2}, {1}, {9}, {1, 1}, {10, 2}, {5, 2}},
  };
  for (const auto& c : cases) {
    SparseRows merged = Rows(1, c.mine, c.my_values)
                            .Merged(mode, Rows(1, c.theirs, c.their_values));
    ExpectRows(merged, c.merged, c.sums);
    merged.DivideByCounts(mode);
    ExpectRows(merged, c.merged, c.means);
  }
}

TEST(SparseRowsTest, RowsMayBeSumsOfSeveralGradients) {
  const FlushSubnormals mode;
  const std::vector<int64_t> counts = {3, 1};
  const SparseRows sums({kType, 1}, Indices{4, 2},
                        Encode(kType, Doubles{30, 2}), counts);

  SparseRows merged =
      sums.Canonical(mode).Merged(mode, Rows(1, {4, 9}, {10, 7}));

  EXPECT_THAT(merged.counts(), ElementsAre(1, 4, 1));
  merged.DivideByCounts(mode);
  ExpectRows(merged, {2, 4, 9}, {2, 10, 7});
}

TEST(SparseRowsTest, MergedMovesWholeRows) {
  const FlushSubnormals mode;
  ExpectRows(
      Rows(2, {0, 1}, {1, 0, 0, 2}).Merged(mode, Rows(2, {0, 2}, {0, 1, 3, 0})),
      {0, 1, 2}, {1, 1, 0, 2, 3, 0});
}

TEST(SparseRowsTest, CanonicalSortsAndAddsInOrderOfAppearance) {
  const FlushSubnormals mode;
  const struct {
    Indices indices;
    Doubles values;
    Indices sorted;
    Doubles sums;
  } cases[] = {
      {{}, {}, {}, {}},
      {{1, 4, 6}, {1, 4, 6}, {1, 4, 6}, {1, 4, 6}},
      {{6, 1, 4}, {6, 1, 4}, {1, 4, 6}, {1, 4, 6}},
      {{2, 1, 2, 1, 2}, {1, 2, 3, 4, 5}, {1, 2}, {6, 9}},
      // 1e8 swallows the terms before it, not those after both.
      {{3, 0, 3, 3, 3}, {1, 7, 1e8, -1e8, 1}, {0, 3}, {7, 1}},
  };
  for (const auto& c : cases) {
    ExpectRows(Rows(1, c.indices, c.values).Canonical(mode), c.sorted, c.sums);
  }
}

TEST(SparseRowsTest, CanonicalRowsCountAsOneGradient) {
  const FlushSubnormals mode;
  SparseRows rows = Rows(1, {1, 1}, {1, 2}).Canonical(mode);
  rows = rows.Merged(mode, Rows(1, {1}, {9}));

  rows.DivideByCounts(mode);

  ExpectRows(rows, {1}, {6});
}

TEST(SparseRowsTest, RowsWithoutColumnsKeepTheirIndices) {
  const FlushSubnormals mode;
  SparseRows rows = Rows(0, {3, 1, 3}, {}).Canonical(mode);
  rows = rows.Merged(mode, Rows(0, {2, 3}, {}));
  rows.DivideByCounts(mode);

  EXPECT_THAT(rows.indices(), ElementsAre(1, 2, 3));
  EXPECT_THAT(rows.values(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
