#include "chief/operators/told_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

Sender Worker(int index, uint64_t incarnation = 1) {
  return {"job", {TaskType::kWorker, index}, incarnation};
}

TEST(ToldSharesTest, WorkerWithAShareOfAnotherSetMustRegisterAgain) {
  ToldShares shares;
  shares.Told(Worker(0), {0, 1, 2});
  EXPECT_THAT(shares.Check(Worker(0), {0, 1, 2}), IsOk());
  const auto again =
      StatusIs(absl::StatusCode::kAborted, HasSubstr("new incarnation"));
  EXPECT_THAT(shares.Check(Worker(0), {0, 1, 2, 3}), again);
  EXPECT_THAT(shares.Check(Worker(0), {0, 1, 3}), again);

  shares.Told(Worker(0, 2), {0, 1, 3});
  EXPECT_THAT(shares.Check(Worker(0, 2), {0, 1, 3}), IsOk());
}

TEST(ToldSharesTest, WorkerOfAnEarlierChiefHasItsShare) {
  ToldShares shares;
  shares.Told(Worker(0), {0, 1});
  EXPECT_THAT(shares.Check(Worker(1), {0, 1, 2}), IsOk());
  EXPECT_THAT(shares.Check(Worker(0, 7), {0, 1, 2}), IsOk());
}

TEST(ToldSharesTest, OtherTasksHaveNoShare) {
  ToldShares shares;
  const Sender server{"job", {TaskType::kPs, 0}, 1};
  shares.Told(server, {0});
  EXPECT_THAT(shares.Check(server, {0, 1}), IsOk());
}

}  // namespace
}  // namespace lockstep::chief
