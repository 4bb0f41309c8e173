#include "strategy/results.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

TEST(ResultsTest, AFunctionMayReturnAStatusAValueOrNothing) {
  int calls = 0;
  auto nothing = [&](int) { ++calls; };
  auto status = [](int) { return absl::DataLossError(""); };
  auto value = [](int x) { return x + 1; };
  auto either = [](int x) -> absl::StatusOr<int> { return x + 2; };
  EXPECT_THAT(Call(nothing, 1), IsOk());
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(Call(status, 1), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Call(value, 1), IsOkAndHolds(2));
  EXPECT_THAT(Call(either, 1), IsOkAndHolds(3));
}

TEST(ResultsTest, AReplicaGetsItsPartOfAWrappedResult) {
  const absl::StatusOr<PerReplica<int>> each = PerReplica<int>({3, 4}, 0);
  EXPECT_THAT(PartOf<PerReplica<int>>::Take(each, 1, 2), IsOkAndHolds(4));
  EXPECT_THAT(PartOf<PerReplica<int>>::Take(each, 1, 3),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const absl::StatusOr<AtVariable<int>> copies =
      AtVariable<int>({{"a", "b", "c"}}, std::vector<int>{3, 4});
  EXPECT_THAT(PartOf<AtVariable<int>>::Take(copies, 1, 2), IsOkAndHolds(4));
  EXPECT_THAT(PartOf<AtVariable<int>>::Take(copies, 1, 3),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PartOf<int>::Take(absl::StatusOr<int>(5), 1, 2), IsOkAndHolds(5));
  EXPECT_THAT(PartOf<void>::Take(absl::DataLossError(""), 1, 2),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace lockstep::strategy
