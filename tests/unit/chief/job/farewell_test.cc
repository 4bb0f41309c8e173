#include "chief/job/farewell.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

class FarewellTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLease = absl::Seconds(2);

  FarewellTest() {
    job_.lease = kLease;
    Begin(absl::OkStatus());
  }
  void Begin(const absl::Status& ended) { farewell_.Begin(ended, "why"); }
  bool GoOn(absl::Duration after) {
    context_.now += after;
    return farewell_.GoOn();
  }
  void EndCheckpoint() {
    checkpoints_.OnBegun({7, absl::InternalError("no")}, /*quiet=*/true,
                         context_.now, context_.out);
  }
  StateReached Told() const {
    for (const JobAction& action : context_.out) {
      const auto* report = std::get_if<JobReport>(&action);
      if (report == nullptr) continue;
      if (const auto* told = std::get_if<StateReached>(report)) return *told;
    }
    return {};
  }
  void Join(const TaskId& task) {
    ASSERT_EQ(members_.Register(task, 1, context_.now), absl::OkStatus());
  }

  const TaskId worker_{TaskType::kWorker, 0};
  const TaskId ps_{TaskType::kPs, 0};
  JobConfig job_;
  MembershipTable members_{{worker_, ps_}, kLease};
  JobContext context_{job_, members_, absl::UnixEpoch() + absl::Hours(1)};
  CheckpointDriver checkpoints_{job_};
  Farewell farewell_{context_, checkpoints_};
};

TEST_F(FarewellTest, MembersAreNotToldWhileACheckpointIsWritten) {
  checkpoints_.Start(7, 1, context_.out);
  EXPECT_FALSE(GoOn(2 * job_.max_wait));
  EXPECT_EQ(Told().reason, "");
  EndCheckpoint();
  EXPECT_FALSE(GoOn(absl::Seconds(1)));
  EXPECT_EQ(Told().state, JobState::kDone);
  EXPECT_EQ(Told().reason, "why");
}

TEST_F(FarewellTest, FailureIsToldAfterMaxWaitAlthoughTheVolumeHangs) {
  Begin(absl::InternalError("NaN"));
  checkpoints_.Start(7, 1, context_.out);
  checkpoints_.OnBegun({7, absl::OkStatus()}, /*quiet=*/true, context_.now,
                       context_.out);
  EXPECT_FALSE(GoOn(job_.max_wait - absl::Seconds(1)));
  EXPECT_EQ(Told().reason, "");
  EXPECT_FALSE(GoOn(absl::Seconds(1)));
  EXPECT_EQ(Told().state, JobState::kFailed);
  EXPECT_EQ(Told().reason, "NaN");
}

TEST_F(FarewellTest, StopAndFailureSayTheirReason) {
  Begin(StoppedStatus("enough", /*hold=*/true));
  GoOn(absl::ZeroDuration());
  EXPECT_EQ(Told().state, JobState::kStopped);
  EXPECT_EQ(Told().reason, "enough");
  EXPECT_TRUE(Told().hold);
}

// A worker whose program cannot start never comes.
TEST_F(FarewellTest, ChiefThatHasHeardOfNoWorkerAwaitsSomeHeartbeats) {
  EXPECT_FALSE(GoOn(absl::ZeroDuration()));
  EXPECT_FALSE(
      GoOn(Farewell::kFirstBeats * job_.heartbeat_interval - absl::Seconds(1)));
  GoOn(absl::Seconds(1));
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

TEST_F(FarewellTest, MembersThatBeatFastNeedTimeToConnectAllTheSame) {
  job_.heartbeat_interval = absl::Milliseconds(20);
  EXPECT_FALSE(GoOn(absl::ZeroDuration()));
  EXPECT_FALSE(GoOn(Farewell::kFirstContact - absl::Milliseconds(1)));
  GoOn(absl::Milliseconds(1));
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

TEST_F(FarewellTest, WorkerMayJoinForALeaseToLearnOfTheEnd) {
  Join(worker_);
  GoOn(absl::ZeroDuration());
  EXPECT_FALSE(GoOn(kLease));
  GoOn(job_.heartbeat_interval);
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

TEST_F(FarewellTest, ChiefThatDoesNotKnowItsWorkersAwaitsThemForALease) {
  Join(worker_);
  ASSERT_EQ(members_.Leave(worker_, 1, LeaveCause::kDone, "done", nullptr,
                           context_.now),
            absl::OkStatus());
  members_.AwaitWorkers();
  EXPECT_FALSE(GoOn(absl::ZeroDuration()));
  EXPECT_FALSE(GoOn(kLease));
  GoOn(job_.heartbeat_interval);
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

TEST_F(FarewellTest, DeadServerIsAwaitedAndADeadWorkerIsNot) {
  Join(worker_);
  Join(ps_);
  EXPECT_FALSE(GoOn(kLease + absl::Seconds(1)));  // both are dead
  EXPECT_FALSE(GoOn(kLease + absl::Seconds(1)));
  ASSERT_EQ(members_.Register(ps_, 2, context_.now), absl::OkStatus());
  ASSERT_EQ(
      members_.Leave(ps_, 2, LeaveCause::kDone, "done", nullptr, context_.now),
      absl::OkStatus());
  EXPECT_FALSE(GoOn(absl::ZeroDuration()));
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

TEST_F(FarewellTest, NothingIsAwaitedForLongerThanTheGrace) {
  Join(ps_);
  EXPECT_FALSE(GoOn(absl::ZeroDuration()));
  EXPECT_FALSE(GoOn(Farewell::kLeaveGrace));
  EXPECT_TRUE(GoOn(Farewell::kLinger));
}

}  // namespace
}  // namespace lockstep::chief
