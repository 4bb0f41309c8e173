#include "common/membership/membership.h"

#include "common/base/stop_status.h"
#include "common/wire/incarnation_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using Job = Membership::Answer::Job;
using Next = Membership::Next;

const absl::Status kGone = absl::UnavailableError("no connection");
const absl::Status kLate = absl::DeadlineExceededError("no answer");
const absl::Status kOlder = absl::FailedPreconditionError("older");

constexpr absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

class MembershipTest : public ::testing::Test {
 protected:
  // Let in at second 0, to a job whose max_wait is 60 s.
  void Join() {
    membership_.BeginRegistration(At(0));
    membership_.set_incarnation(7);
    ASSERT_EQ(membership_.OnRegisterAnswer(absl::OkStatus(), 0, At(0)),
              Next::kMember);
    membership_.BeginHeartbeats("job", absl::Seconds(60), At(0));
  }

  Membership membership_{{"chief:1", absl::Seconds(30)}};
};

TEST_F(MembershipTest,
       ChiefThatIsNotThereIsAskedAgainForAsLongAsItIsWaitedFor) {
  membership_.BeginRegistration(At(0));

  EXPECT_EQ(membership_.OnRegisterAnswer(kGone, 0, At(1)), Next::kTryAgain);
  EXPECT_EQ(membership_.OnRegisterAnswer(kLate, 0, At(29)), Next::kTryAgain);
  EXPECT_EQ(membership_.OnRegisterAnswer(kGone, 0, At(30)),
            Next::kWaitedTooLong);
}

TEST_F(MembershipTest, ChiefThatHasAnsweredBeforeIsWaitedForAsTheJobSays) {
  Join();

  membership_.BeginRegistration(At(100));

  EXPECT_TRUE(membership_.was_member());
  EXPECT_EQ(membership_.OnRegisterAnswer(kGone, 0, At(159)), Next::kTryAgain);
  EXPECT_EQ(membership_.OnRegisterAnswer(kGone, 0, At(160)),
            Next::kWaitedTooLong);
}

TEST_F(MembershipTest, RefusalIsForGoodUnlessItNamesANewerIncarnation) {
  membership_.BeginRegistration(At(0));

  EXPECT_EQ(membership_.OnRegisterAnswer(kOlder, 0, At(1)), Next::kRefused);
  EXPECT_EQ(membership_.OnRegisterAnswer(kOlder, 12, At(1)),
            Next::kTryWithNewer);

  EXPECT_EQ(membership_.newest_known(), 12u);
}

TEST_F(MembershipTest, IncarnationThatNoClockLeadsToIsIgnored) {
  membership_.OnNewerIncarnation(12);
  membership_.OnNewerIncarnation(3);
  membership_.OnNewerIncarnation(kLargestIncarnation);

  EXPECT_EQ(membership_.newest_known(), 12u);
}

TEST_F(MembershipTest, RegistrationEndsTheMembershipBefore) {
  Join();
  membership_.OnRefusal(absl::AbortedError("the lease has expired"));

  membership_.BeginRegistration(At(9));

  EXPECT_FALSE(membership_.ended());
  EXPECT_FALSE(membership_.lease_lost());
  EXPECT_EQ(membership_.job_id(), "");
}

TEST_F(MembershipTest, MembershipLastsWhileTheJobWaitsOrTrains) {
  Join();

  membership_.OnHeartbeat({.job = Job::kWaits}, At(1));
  EXPECT_FALSE(membership_.job_is_training());
  membership_.OnHeartbeat({.job = Job::kTrains}, At(2));
  EXPECT_TRUE(membership_.job_is_training());

  EXPECT_FALSE(membership_.ended());
}

TEST_F(MembershipTest, EndOfTheJobIsTheEnd) {
  Join();
  membership_.OnHeartbeat({.job = Job::kDone}, At(1));
  EXPECT_TRUE(membership_.ended());
  EXPECT_THAT(membership_.end(), IsOk());

  Join();
  membership_.OnHeartbeat(
      {.job = Job::kStopped, .reason = "asked to", .state_saved = true}, At(1));
  EXPECT_THAT(membership_.end(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("asked to")));
  EXPECT_TRUE(membership_.state_is_spare());

  Join();
  membership_.OnHeartbeat({.job = Job::kFailed, .reason = "NaN"}, At(1));
  EXPECT_THAT(membership_.end(), StatusIs(absl::StatusCode::kAborted, "NaN"));
  EXPECT_FALSE(membership_.lease_lost());
}

TEST_F(MembershipTest, StateIsSpareOnceTheJobIsDoneOrACheckpointHasIt) {
  Join();
  EXPECT_FALSE(membership_.state_is_spare());
  membership_.OnFailedHeartbeat(absl::AbortedError("lease"), At(1));
  EXPECT_FALSE(membership_.state_is_spare());

  Join();
  membership_.OnHeartbeat({.job = Job::kDone}, At(1));
  EXPECT_TRUE(membership_.state_is_spare());

  Join();
  membership_.OnHeartbeat({.job = Job::kFailed, .reason = "NaN"}, At(1));
  EXPECT_FALSE(membership_.state_is_spare());

  Join();
  membership_.OnHeartbeat(
      {.job = Job::kFailed, .reason = "NaN", .state_saved = true}, At(1));
  EXPECT_TRUE(membership_.state_is_spare());
}

TEST_F(MembershipTest, SilentChiefIsWaitedForUntilMaxWait) {
  Join();
  membership_.OnHeartbeat({.job = Job::kTrains}, At(10));

  membership_.OnFailedHeartbeat(kGone, At(69));
  EXPECT_FALSE(membership_.ended());
  membership_.OnFailedHeartbeat(kLate, At(70));

  EXPECT_THAT(membership_.end(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("chief:1 is gone"), HasSubstr("1m"))));
  EXPECT_FALSE(membership_.lease_lost());
}

TEST_F(MembershipTest, ChiefThatShutsDownIsWaitedForLikeOneThatIsSilent) {
  Join();

  membership_.OnFailedHeartbeat(absl::CancelledError("CANCELLED"), At(1));
  EXPECT_FALSE(membership_.ended());

  membership_.OnHeartbeat({.job = Job::kTrains}, At(2));
  EXPECT_FALSE(membership_.ended());
}

TEST_F(MembershipTest, SilenceIsReportedNowAndThen) {
  Join();

  EXPECT_EQ(membership_.SilenceToReport(At(2)), std::nullopt);
  EXPECT_THAT(membership_.SilenceToReport(At(3)), Optional(absl::Seconds(3)));
  EXPECT_EQ(membership_.SilenceToReport(At(8)), std::nullopt);
  EXPECT_THAT(membership_.SilenceToReport(At(9)), Optional(absl::Seconds(9)));
}

TEST_F(MembershipTest, ExpiredLeaseAllowsAnotherRegistration) {
  Join();

  membership_.OnFailedHeartbeat(absl::AbortedError("expired"), At(1));

  EXPECT_TRUE(membership_.lease_lost());
  EXPECT_THAT(membership_.end(),
              StatusIs(absl::StatusCode::kUnavailable, "expired"));
}

TEST_F(MembershipTest, ReplacedProcessMustNotComeBack) {
  Join();

  membership_.OnFailedHeartbeat(absl::AlreadyExistsError("a newer one"), At(1));

  EXPECT_FALSE(membership_.lease_lost());
  EXPECT_THAT(membership_.end(),
              StatusIs(absl::StatusCode::kAlreadyExists, "a newer one"));
}

TEST_F(MembershipTest, RefusedCallEndsTheMembershipOnlyIfTheLeaseExpired) {
  Join();

  membership_.OnRefusal(absl::InvalidArgumentError("another model"));
  EXPECT_FALSE(membership_.ended());
  membership_.OnRefusal(absl::AbortedError("expired"));

  EXPECT_TRUE(membership_.lease_lost());
}

TEST_F(MembershipTest, EndOfInputIsSaidUntilTheChiefHasHeard) {
  Join();
  using After = Membership::AfterLeave;

  EXPECT_EQ(membership_.OnLeaveAnswer(kGone, LeaveCause::kEndOfInput),
            After::kTryAgain);
  EXPECT_EQ(membership_.OnLeaveAnswer(kLate, LeaveCause::kEndOfInput),
            After::kTryAgain);
  EXPECT_EQ(
      membership_.OnLeaveAnswer(absl::OkStatus(), LeaveCause::kEndOfInput),
      After::kGone);
  EXPECT_FALSE(membership_.lease_lost());
  EXPECT_EQ(membership_.OnLeaveAnswer(kGone, LeaveCause::kStopped),
            After::kGone);
}

TEST_F(MembershipTest, EndOfInputIsSaidNoMoreOnceTheMembershipHasEnded) {
  Join();
  membership_.OnHeartbeat({.job = Job::kDone}, At(1));

  EXPECT_EQ(membership_.OnLeaveAnswer(kGone, LeaveCause::kEndOfInput),
            Membership::AfterLeave::kGone);
  EXPECT_FALSE(membership_.lease_lost());
}

TEST_F(MembershipTest, WorkerWhoseEndOfInputComesAfterItsLeaseRegistersAgain) {
  Join();
  const absl::Status dead = absl::AbortedError("taken for dead");

  EXPECT_EQ(membership_.OnLeaveAnswer(dead, LeaveCause::kStopped),
            Membership::AfterLeave::kGone);
  EXPECT_FALSE(membership_.lease_lost());
  EXPECT_EQ(membership_.OnLeaveAnswer(dead, LeaveCause::kEndOfInput),
            Membership::AfterLeave::kGone);
  EXPECT_TRUE(membership_.lease_lost());
}

}  // namespace
}  // namespace lockstep
