#include "worker/client/chunks/row_route.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

VariableSpec Table(int64_t width, RowCut cut = RowCut::kMod) {
  return {"t", {10, width}, DType::kFloat32, {}, cut};
}

TEST(RowRouteTest, PartsOfConsecutiveRowsHaveAStretchOfTheList) {
  // Rows 3 to 6 of a table of rows of two.
  const RoutedRows routed =
      RouteRows({0, 6, 8, 0, 0, 1}, Table(2), {0, 3, 4, 6, 7, 9});
  EXPECT_THAT(routed.places, ElementsAre(1, 2, 3));
  EXPECT_THAT(routed.rows, ElementsAre(0, 1, 3));
}

TEST(RowRouteTest, PartsOfRowsInTurnHaveEveryNth) {
  // Rows 1, 4, 7.
  const RoutedRows routed =
      RouteRows({0, 2, 6, 0, 0, 3}, Table(2), {0, 1, 2, 7, 10});
  EXPECT_THAT(routed.places, ElementsAre(1, 3));
  EXPECT_THAT(routed.rows, ElementsAre(0, 2));
}

TEST(RowRouteTest, EveryRowIsInOnePart) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 10; ++id) ids.push_back(id);
  size_t found = 0;
  for (int64_t first = 0; first < 4; ++first) {
    const int64_t rows = (10 - first + 3) / 4;
    found += RouteRows({0, first, rows, 0, 0, 4}, Table(1), ids).rows.size();
  }
  EXPECT_EQ(found, ids.size());
}

TEST(RowRouteTest, NoRowsGoNowhere) {
  EXPECT_THAT(RouteRows({0, 0, 4, 0, 0, 1}, Table(2), {}).rows, IsEmpty());
}

TEST(RowRouteTest, EveryKeyOfAGrowingTableIsInOnePartUnderItsOwnNumber) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 100; ++i) keys.push_back(i << 55);
  size_t found = 0;
  for (int64_t part = 0; part < 4; ++part) {
    const RoutedRows routed =
        RouteRows({0, 2 * part, 4, 0, 0, 4}, Table(2, RowCut::kKey), keys);
    for (size_t i = 0; i < routed.rows.size(); ++i) {
      EXPECT_EQ(routed.rows[i], keys[routed.places[i]]);
      EXPECT_EQ(PartOfKey(routed.rows[i], 4), part);
    }
    found += routed.rows.size();
  }
  EXPECT_EQ(found, keys.size());
}

}  // namespace
}  // namespace lockstep::worker
