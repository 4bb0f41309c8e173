#include "chief/job/servers_wait.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;

class ServersWaitTest : public ::testing::Test {
 protected:
  static JobConfig Job() {
    JobConfig job;
    job.max_wait = absl::Seconds(30);
    job.lease = absl::Seconds(3);
    return job;
  }
  ServersWaitTest() { wait_.Begin(now_); }
  absl::StatusOr<bool> Ready(const std::vector<TaskId>& away,
                             const absl::Status& stop = absl::OkStatus()) {
    out_.clear();
    return wait_.Ready({away, given_up_at_}, stop, now_, out_);
  }

  const JobConfig job_ = Job();
  const std::vector<TaskId> away_ = {{TaskType::kPs, 1}};
  absl::Time now_ = absl::UnixEpoch();
  absl::Time given_up_at_ = absl::InfiniteFuture();
  JobActions out_;
  ServersWait wait_{job_};
};

TEST_F(ServersWaitTest, IsReadyOnceAllAreThere) {
  EXPECT_FALSE(*Ready(away_));
  EXPECT_TRUE(*Ready({}));
  EXPECT_TRUE(out_.empty());
}

TEST_F(ServersWaitTest, NamesTheAbsentServersEveryTenSeconds) {
  Ready(away_).IgnoreError();
  EXPECT_EQ(out_.size(), 2U);
  now_ += absl::Seconds(9);
  Ready(away_).IgnoreError();
  EXPECT_EQ(out_.size(), 1U);  // in the status table alone
  now_ += absl::Seconds(2);
  Ready(away_).IgnoreError();
  EXPECT_EQ(std::get<Say>(out_.at(1)).text,
            "the job has waited 11s for ps 1 (gone)");
}

TEST_F(ServersWaitTest, SaysWhenTheJobGoesOnWithoutThem) {
  given_up_at_ = now_ + absl::Milliseconds(2500);
  Ready(away_).IgnoreError();
  EXPECT_EQ(std::get<Say>(out_.at(1)).text,
            "the job waits for ps 1 (gone), and goes on without it in 3s");

  // The time that is left is in the status table, and not in more lines.
  now_ += absl::Seconds(1);
  Ready(away_).IgnoreError();
  ASSERT_EQ(out_.size(), 1U);
  EXPECT_EQ(std::get<Waits>(std::get<JobReport>(out_[0])).waits.at(0).waits_for,
            "ps 1 (gone), and goes on without it in 2s");

  Ready({{TaskType::kPs, 1}, {TaskType::kPs, 2}}).IgnoreError();
  EXPECT_EQ(std::get<Say>(out_.at(1)).text,
            "the job waits for ps 1 (gone), ps 2 (gone), and goes on without "
            "them in 2s");
}

TEST_F(ServersWaitTest, DoesNotSayWhatMaxWaitPrevents) {
  given_up_at_ = now_ + absl::Seconds(30);
  Ready(away_).IgnoreError();
  EXPECT_EQ(std::get<Say>(out_.at(1)).text, "the job waits for ps 1 (gone)");
}

TEST_F(ServersWaitTest, LastsNoLongerThanMaxWait) {
  now_ += absl::Seconds(30);
  EXPECT_THAT(Ready({}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "the job waited longer than max_wait (30s) for the "
                       "servers"));
}

TEST_F(ServersWaitTest, FailedRoundSaysWhy) {
  wait_.RoundFailed(absl::UnavailableError("ps 0: x"), now_);
  EXPECT_TRUE(*Ready({}));
  EXPECT_EQ(std::get<Say>(out_.at(1)).text,
            "the job waits for the servers (ps 0: x)");
  wait_.Begin(now_);
  EXPECT_TRUE(*Ready({}));
  EXPECT_TRUE(out_.empty());
}

TEST_F(ServersWaitTest, StopEndsItAfterALease) {
  const absl::Status stop = absl::CancelledError("enough");
  EXPECT_FALSE(*Ready(away_, stop));
  now_ += absl::Seconds(4);
  EXPECT_THAT(Ready(away_, stop),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "enough, while ps 1 (gone) is away"));
  EXPECT_TRUE(*Ready({}, stop));
}

TEST_F(ServersWaitTest, LongRoundThatFailsIsFollowedByAnotherOne) {
  const absl::Status why = absl::UnavailableError("ps 0: x");
  EXPECT_TRUE(*Ready({}));
  now_ += absl::Seconds(1);
  wait_.RoundFailed(why, now_);
  EXPECT_TRUE(*Ready({}));
  now_ += absl::Seconds(40);
  wait_.RoundFailed(why, now_);
  EXPECT_TRUE(*Ready({}));

  // Further rounds count.
  now_ += absl::Seconds(29);
  wait_.RoundFailed(why, now_);
  EXPECT_THAT(Ready({}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "the job waited longer than max_wait (30s) for the "
                       "servers (ps 0: x)"));
}

TEST_F(ServersWaitTest, StopEndsRoundsThatFailAfterALease) {
  const absl::Status stop = absl::CancelledError("enough");
  wait_.RoundFailed(absl::UnavailableError("ps 0: x"), now_);
  now_ += absl::Seconds(3);
  EXPECT_TRUE(*Ready({}, stop));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Ready({}, stop),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "enough, while the servers cannot be brought together: "
                       "ps 0: x"));
}

// A server that died late in the wait is known to be dead after a lease, and
// can then be given up.
TEST_F(ServersWaitTest, RoundsMayFailForALeaseAfterAWait) {
  const absl::Status stop = absl::CancelledError("enough");
  EXPECT_FALSE(*Ready(away_, stop));
  now_ += absl::Milliseconds(2900);
  EXPECT_TRUE(*Ready({}, stop));
  wait_.RoundFailed(absl::UnavailableError("ps 2: x"), now_);
  now_ += absl::Seconds(3);
  EXPECT_TRUE(*Ready({}, stop));
  wait_.RoundFailed(absl::UnavailableError("ps 2: x"), now_);
  now_ += absl::Seconds(1);
  EXPECT_THAT(Ready({}, stop), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ServersWaitTest, LongWorkIsSaid) {
  wait_.ReportWork("ps 0, 40 %", now_, out_);
  EXPECT_EQ(out_.size(), 1U);
  now_ += absl::Seconds(6);
  out_.clear();
  wait_.ReportWork("ps 0, 60 %", now_, out_);
  EXPECT_EQ(std::get<Say>(out_.at(1)).text,
            "the job has waited 6s for ps 0, 60 %");
}

}  // namespace
}  // namespace lockstep::chief
