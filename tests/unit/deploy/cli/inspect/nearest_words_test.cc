#include "deploy/cli/inspect/nearest_words.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

// The words a, b, c in the plane; d has no direction.
NearestWords Words() {
  auto vocabulary = Vocabulary::Make("a a a a b b b c c d", 1);
  EXPECT_OK(vocabulary);
  return NearestWords(*std::move(vocabulary), {1, 0, 3, 3, -2, 0.5f, 0, 0});
}

TEST(NearestWordsTest, TheSmallestAngleComesFirst) {
  const auto nearest = Words().Find("a", 2);
  ASSERT_OK(nearest);
  ASSERT_EQ(nearest->size(), 2u);
  EXPECT_EQ((*nearest)[0].first, "b");
  EXPECT_NEAR((*nearest)[0].second, 0.70711, 1e-5);
  EXPECT_EQ((*nearest)[1].first, "d");
}

TEST(NearestWordsTest, AVectorThatIsNotFiniteSpoilsNoOrder) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    auto vocabulary = Vocabulary::Make("a a a a a b b b b c c c d d e", 1);
    ASSERT_OK(vocabulary);
    const NearestWords words(*std::move(vocabulary),
                             {1, 0, 3, 3, -2, 0.5f, bad, 0, 1, 2});

    EXPECT_THAT(words.Rank("a", "b"), IsOkAndHolds(1));
    EXPECT_THAT(words.Rank("a", "e"), IsOkAndHolds(2));
    EXPECT_THAT(words.Rank("a", "d"), IsOkAndHolds(3));
    EXPECT_THAT(words.Rank("a", "c"), IsOkAndHolds(4));
  }
}

TEST(NearestWordsTest, RanksCountFromOne) {
  EXPECT_THAT(Words().Rank("a", "b"), IsOkAndHolds(1));
  EXPECT_THAT(Words().Rank("a", "c"), IsOkAndHolds(3));
}

TEST(NearestWordsTest, UnknownWordsAreNamed) {
  EXPECT_THAT(Words().Find("e", 1), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Words().Rank("a", "e"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Words().Rank("a", "a"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep::cli
