#include "server/shard/parts/row_gradients.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ten rows of two floats.
constexpr PartSpec kTable = {0, 0, 20, DType::kFloat32, 2, 1};

PartGradient Rows(std::vector<int64_t> indices, std::vector<float> values) {
  PartGradient gradient = GradientOf(std::move(values));
  const auto count = static_cast<int64_t>(indices.size());
  gradient.rows = GradientRows{std::move(indices), {count, 2}};
  return gradient;
}

std::vector<float> Values(const PartGradient& gradient) {
  return FromBytes<float>({gradient.slices[0].data, gradient.slices[0].size});
}

TEST(RowGradientsTest, RowsAreSortedAndRepeatedOnesAdded) {
  PartGradient gradient = Rows({5, 2, 5}, {1, 2, 3, 4, 10, 20});

  ASSERT_OK(MakeCanonical(0, kTable, gradient));

  EXPECT_THAT(gradient.rows->indices, ElementsAre(2, 5));
  EXPECT_THAT(gradient.rows->shape, ElementsAre(2, 2));
  EXPECT_THAT(Values(gradient), ElementsAre(3, 4, 11, 22));
}

TEST(RowGradientsTest, CanonicalRowsStayWhereTheyAre) {
  PartGradient gradient = Rows({2, 5}, {1, 2, 3, 4});
  const std::byte* before = gradient.slices[0].data;

  ASSERT_OK(MakeCanonical(0, kTable, gradient));

  EXPECT_EQ(gradient.slices[0].data, before);
}

TEST(RowGradientsTest, RowsThatTheTableDoesNotHaveAreRefused) {
  for (const int64_t row : {int64_t{-1}, int64_t{10}, INT64_MIN, INT64_MAX}) {
    PartGradient gradient = Rows({3, row}, {1, 2, 3, 4});
    EXPECT_THAT(MakeCanonical(7, kTable, gradient),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("part 7"), HasSubstr("10"))));
    EXPECT_THAT(gradient.rows->indices, ElementsAre(3, row));
  }
}

TEST(RowGradientsTest, OtherFormsAreRefused) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  PartGradient dense = GradientOf(std::vector<float>(20));
  EXPECT_THAT(MakeCanonical(0, kTable, dense), invalid);
  PartGradient short_rows = Rows({1, 2}, {1, 2, 3});
  EXPECT_THAT(MakeCanonical(0, kTable, short_rows), invalid);
  PartGradient wide = Rows({1}, {1, 2, 3});
  wide.rows->shape = {1, 3};
  EXPECT_THAT(MakeCanonical(0, kTable, wide), invalid);
  PartGradient half = Rows({1}, {1, 2});  // as long as four bfloat16
  half.type = GradientType::kBFloat16;
  EXPECT_THAT(MakeCanonical(0, kTable, half), invalid);
}

TEST(RowGradientsTest, BFloat16RowsBecomeTheFloatsThatTheyStandFor) {
  for (const std::vector<int64_t>& indices :
       {std::vector<int64_t>{1, 4}, std::vector<int64_t>{4, 1}}) {
    PartGradient gradient = BFloat16GradientOf({0x3f80, 0x4000, 0xc080, 0});
    gradient.rows = GradientRows{indices, {2, 2}};
    ASSERT_OK(MakeCanonical(0, kTable, gradient));
    EXPECT_EQ(gradient.type, GradientType::kVariable);
    EXPECT_THAT(gradient.rows->indices, ElementsAre(1, 4));
    const ByteSlice& slice = gradient.slices[0];
    const std::vector<float> values =
        FromBytes<float>({slice.data, slice.size});
    EXPECT_THAT(values, indices[0] == 1 ? ElementsAre(1, 2, -4, 0)
                                        : ElementsAre(-4, 0, 1, 2));
  }
  PartSpec doubles = kTable;
  doubles.dtype = DType::kFloat64;
  PartGradient gradient = BFloat16GradientOf({0x3f80, 0x4000});
  gradient.rows = GradientRows{{1}, {1, 2}};
  EXPECT_THAT(MakeCanonical(0, doubles, gradient),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(RowGradientsTest, EachRowIsDividedByTheGradientsThatHaveIt) {
  const std::vector<PartGradient> gradients = {
      Rows({1, 4}, {2, 2, 8, 8}), Rows({}, {}), Rows({4, 9}, {2, 4, 1, 1})};

  const SparseGradient mean = MeanOfRows(kTable, gradients);

  EXPECT_THAT(mean.indices, ElementsAre(1, 4, 9));
  EXPECT_THAT(FromBytes<float>(mean.values), ElementsAre(2, 2, 5, 6, 1, 1));
}

TEST(RowGradientsTest, SumsAreDividedByTheGradientsThatTheyAreOf) {
  PartGradient sum = Rows({9, 1}, {6, 6, 3, 9});
  sum.rows->counts = {3, 1};
  ASSERT_OK(MakeCanonical(0, kTable, sum));
  EXPECT_THAT(sum.rows->counts, ElementsAre(1, 3));

  const SparseGradient mean =
      MeanOfRows(kTable, std::vector{sum, Rows({9}, {2, 10})});

  EXPECT_THAT(mean.indices, ElementsAre(1, 9));
  EXPECT_THAT(FromBytes<float>(mean.values), ElementsAre(3, 9, 2, 4));
}

// 2^24 + 1 is rounded to 2^24, and 2^24 + 2 is not.
TEST(RowGradientsTest, RowsAreAddedInTheOrderGiven) {
  const float large = 1 << 24;
  const std::vector<PartGradient> gradients = {
      Rows({1}, {large, large}), Rows({1}, {1, 1}), Rows({1}, {1, 1})};

  const SparseGradient one_by_one = MeanOfRows(kTable, gradients);
  const SparseGradient right_first =
      MeanOfRows(kTable, gradients, std::vector{0, 0, 2});

  EXPECT_THAT(FromBytes<float>(one_by_one.values),
              ElementsAre(large / 3, large / 3));
  EXPECT_THAT(FromBytes<float>(right_first.values),
              ElementsAre((large + 2) / 3, (large + 2) / 3));
}

TEST(RowGradientsTest, CountsThatCannotBeAreRefused) {
  const struct {
    std::vector<int64_t> rows, counts;
    const char* why;
  } cases[] = {{{1, 2}, {1}, "1 counts for 2 rows"},
               {{1, 2}, {1, 0}, "the count of row 2 is 0"},
               {{2, 2}, {1, 1}, "row 2 twice"}};
  for (const auto& c : cases) {
    PartGradient gradient = Rows(c.rows, {1, 2, 3, 4});
    gradient.rows->counts = c.counts;
    EXPECT_THAT(MakeCanonical(0, kTable, gradient),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.why)));
  }
}

TEST(RowGradientsTest, NoRowsAtAllAreAMeanToo) {
  const std::vector<PartGradient> gradients = {Rows({}, {})};
  EXPECT_THAT(MeanOfRows(kTable, gradients).indices, IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
