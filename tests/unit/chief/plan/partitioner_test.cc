#include "chief/plan/partitioner.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<int64_t> Lengths(int64_t dim, int64_t parts) {
  const std::vector<int64_t> shape = {dim};
  std::vector<int64_t> lengths;
  const auto cut = CutVariable(shape, {parts});
  EXPECT_OK(cut);
  for (const SlicePart& part : *cut) lengths.push_back(part.length[0]);
  return lengths;
}

TEST(PartitionerTest, FixedSizeHasNoMorePartsThanRows) {
  EXPECT_THAT(FixedSizePartition({{10, 10}}, 5),
              IsOkAndHolds(ElementsAre(5, 1)));
  EXPECT_THAT(FixedSizePartition({{3}}, 4), IsOkAndHolds(ElementsAre(3)));
  EXPECT_THAT(FixedSizePartition({{7, 5}, 4, -1}, 3),
              IsOkAndHolds(ElementsAre(1, 3)));
}

TEST(PartitionerTest, AxisSizeFillsPartsUpToTheirBytes) {
  struct Case {
    int64_t axis, bytes, max_shards, expected;
  };
  for (const Case& c :
       {Case{0, 131072, 0, 1}, Case{1, 65536, 0, 1}, Case{2, 32768, 0, 2},
        Case{3, 2048, 0, 32}, Case{3, 1024, 0, 32}, Case{3, 1024, 33, 32},
        Case{3, 1024, 2, 2}}) {
    const auto partition =
        AxisSizePartition({{4, 8, 16, 32}, 4, c.axis}, c.bytes, c.max_shards);
    ASSERT_OK(partition);
    EXPECT_EQ((*partition)[c.axis], c.expected) << c.axis << " " << c.bytes;
  }
  EXPECT_THAT(AxisSizePartition({{4, 8, 16, 32}, 8, 3}, 32768, 0),
              IsOkAndHolds(ElementsAre(1, 1, 1, 4)));
}

TEST(PartitionerTest, MinMaxKeepsPartsAboveTheirBytes) {
  EXPECT_THAT(MinMaxPartition({{64, 4}, 4}, 100, 256),
              IsOkAndHolds(ElementsAre(4, 1)));
  EXPECT_THAT(MinMaxPartition({{64, 4}, 4}, 3, 256),
              IsOkAndHolds(ElementsAre(3, 1)));
  EXPECT_THAT(MinMaxPartition({{2, 4}, 4}, 100, 1),
              IsOkAndHolds(ElementsAre(2, 1)));
}

TEST(PartitionerTest, FirstPartsHaveTheRowsThatAreOver) {
  EXPECT_THAT(Lengths(43, 1), ElementsAre(43));
  EXPECT_THAT(Lengths(43, 2), ElementsAre(22, 21));
  EXPECT_THAT(Lengths(43, 3), ElementsAre(15, 14, 14));
  EXPECT_THAT(Lengths(43, 5), ElementsAre(9, 9, 9, 8, 8));
  EXPECT_THAT(Lengths(13, 3), ElementsAre(5, 4, 4));
}

TEST(PartitionerTest, PartsLieSideBySideOnOneAxis) {
  const std::vector<int64_t> shape = {7, 5};
  const auto parts = CutVariable(shape, {1, 2});
  ASSERT_OK(parts);
  EXPECT_THAT((*parts)[0].length, ElementsAre(7, 3));
  EXPECT_THAT((*parts)[1].offset, ElementsAre(0, 3));
  EXPECT_THAT((*parts)[1].length, ElementsAre(7, 2));
  EXPECT_EQ(PartName("w", 1), "w/part_1");
}

TEST(PartitionerTest, WrongArgumentsAreNamed) {
  EXPECT_THAT(FixedSizePartition({{7}, 4, 1}, 2),
              StatusIs(kInvalid, HasSubstr("axis is 1")));
  EXPECT_THAT(FixedSizePartition({{-1, 5}}, 2),
              StatusIs(kInvalid, HasSubstr("unknown")));
  EXPECT_THAT(AxisSizePartition({{7}}, 0, 0),
              StatusIs(kInvalid, HasSubstr("max_shard_bytes is 0")));
  EXPECT_THAT(AxisSizePartition({{7}}, 8, -1),
              StatusIs(kInvalid, HasSubstr("max_shards is -1")));
  EXPECT_THAT(AxisSizePartition({{0, 3}}, 8, 0),
              StatusIs(kInvalid, HasSubstr("known and at least 1")));
  EXPECT_THAT(MinMaxPartition({{7}}, 2, 0),
              StatusIs(kInvalid, HasSubstr("min_slice_bytes")));
  const std::vector<int64_t> shape = {7, 5};
  const std::pair<Partition, const char*> wrong[] = {
      {{2}, "one count per axis"},
      {{2, 2}, "only one axis can be cut"},
      {{8, 1}, "axis 0 must have from 1 to 7 parts"},
      {{1, 6}, "axis 1 must have from 1 to 5 parts"},
      {{0, 1}, "axis 0 must have from 1 to 7 parts"}};
  for (const auto& [partition, message] : wrong) {
    EXPECT_THAT(CutVariable(shape, partition),
                StatusIs(kInvalid, HasSubstr(message)));
  }
  EXPECT_THAT(CutVariable({}, {}),
              StatusIs(kInvalid, HasSubstr("at least one axis")));
}

// Nothing overflows, however large a shape claims to be.
TEST(PartitionerTest, HugeShapesAreCutLikeOthers) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(AxisSizePartition({{4, huge, huge}, 8}, 1024, 0),
              IsOkAndHolds(ElementsAre(4, 1, 1)));
  EXPECT_THAT(MinMaxPartition({{4, huge, huge}, 8}, 3, 1024),
              IsOkAndHolds(ElementsAre(3, 1, 1)));
}

}  // namespace
}  // namespace lockstep::chief
