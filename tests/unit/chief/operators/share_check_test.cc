#include "chief/operators/share_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TaskId kWorker = {TaskType::kWorker, 0};

TEST(ShareCheckTest, WorkerWithAShareOfAnotherSetMustRegisterAgain) {
  EXPECT_THAT(CheckShare(kWorker, {0, 1, 2}, {0, 1, 2}), IsOk());
  const auto again =
      StatusIs(absl::StatusCode::kAborted,
               AllOf(HasSubstr("worker 0"), HasSubstr("new incarnation")));
  EXPECT_THAT(CheckShare(kWorker, {0, 1, 2}, {0, 1, 2, 3}), again);
  EXPECT_THAT(CheckShare(kWorker, {0, 1, 2}, {0, 1, 3}), again);
}

TEST(ShareCheckTest, MemberThatWasToldOfNoSetMayHaveAny) {
  EXPECT_THAT(CheckShare({TaskType::kPs, 0}, {}, {0, 1}), IsOk());
  EXPECT_THAT(CheckShare(kWorker, {}, {}), IsOk());
}

}  // namespace
}  // namespace lockstep::chief
