#include "common/collective/exchange_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Parcel Number(float number) {
  return std::make_shared<const std::vector<Leaf>>(
      std::vector<Leaf>{Value::Scalar(number)});
}

TEST(ExchangeTableTest, AllGetTheParcelsByRankOnceAllHaveCome) {
  ExchangeTable table(2);
  EXPECT_THAT(table.Add(1, 0, "sum", Number(7)), IsOk());
  EXPECT_FALSE(table.Take(0).has_value());
  EXPECT_THAT(table.Missing(0), ElementsAre(0));
  EXPECT_THAT(table.Add(0, 0, "sum", Number(5)), IsOk());

  for (int member = 0; member < 2; ++member) {
    const auto answer = table.Take(0);
    ASSERT_TRUE(answer.has_value());
    ASSERT_THAT(*answer, IsOk());
    EXPECT_EQ(std::get<Value>((**answer)[0]->at(0)), Value::Scalar(5));
    EXPECT_EQ(std::get<Value>((**answer)[1]->at(0)), Value::Scalar(7));
  }
  EXPECT_EQ(table.open(), 0u);
}

TEST(ExchangeTableTest, AFastMemberMayBeAnExchangeAhead) {
  ExchangeTable table(2);
  EXPECT_THAT(table.Add(0, 0, "a", Number(1)), IsOk());
  EXPECT_THAT(table.Add(1, 0, "a", Number(2)), IsOk());
  ASSERT_TRUE(table.Take(0).has_value());
  EXPECT_THAT(table.Add(0, 1, "b", Number(3)), IsOk());
  EXPECT_FALSE(table.Take(1).has_value());
  EXPECT_EQ(table.open(), 2u);
}

TEST(ExchangeTableTest, AMemberThatIsForgottenHasNotCome) {
  ExchangeTable table(2, /*takers=*/1);
  EXPECT_THAT(table.Add(1, 0, "a", Number(1)), IsOk());
  EXPECT_THAT(table.Add(1, 1, "b", Number(2)), IsOk());
  EXPECT_THAT(table.Add(0, 1, "b", Number(3)), IsOk());
  table.Forget(1);
  table.Forget(1);
  EXPECT_EQ(table.open(), 1u) << "nothing is left of the first exchange";
  EXPECT_THAT(table.Missing(1), ElementsAre(1));

  EXPECT_THAT(table.Add(1, 1, "b", Number(4)), IsOk());
  const auto taken = table.Take(1);
  ASSERT_TRUE(taken.has_value());
  ASSERT_THAT(*taken, IsOk());
  EXPECT_EQ(*(**taken)[0], *Number(3));
  EXPECT_EQ(*(**taken)[1], *Number(4));
}

TEST(ExchangeTableTest, DifferentCallsAreAnErrorOfAllWithBothDescriptions) {
  ExchangeTable table(3);
  EXPECT_THAT(table.Add(0, 4, "all-reduce of float32 [2]", Number(1)), IsOk());
  EXPECT_THAT(table.Add(1, 4, "all-reduce of float32 [2]", Number(1)), IsOk());
  EXPECT_THAT(table.Add(2, 4, "barrier", Number(1)), IsOk());
  for (int member = 0; member < 3; ++member) {
    EXPECT_THAT(*table.Take(4),
                StatusIs(kInvalid,
                         AllOf(HasSubstr("call 4"),
                               HasSubstr("all-reduce of float32 [2] at rank 0"),
                               HasSubstr("barrier at rank 2"))));
  }
  EXPECT_EQ(table.open(), 0u);
}

TEST(ExchangeTableTest, RankOutsideOfTheGroupAndSecondParcelAreRefused) {
  ExchangeTable table(2);
  EXPECT_THAT(table.Add(2, 0, "a", Number(1)), StatusIs(kInvalid));
  EXPECT_THAT(table.Add(-1, 0, "a", Number(1)), StatusIs(kInvalid));
  EXPECT_THAT(table.Add(0, 0, "a", Number(1)), IsOk());
  EXPECT_THAT(table.Add(0, 0, "a", Number(1)),
              StatusIs(kInvalid, HasSubstr("before")));
}

}  // namespace
}  // namespace lockstep
