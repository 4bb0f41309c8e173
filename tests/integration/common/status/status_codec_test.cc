#include "common/status/status_codec.h"

#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(StatusCodecTest, EveryFieldIsTakenOver) {
  v1::GetStatusResponse response;
  response.set_job_name("fashion");
  response.set_job_id("id");
  response.set_state(v1::JOB_FAILED);
  response.set_reason("why");
  response.set_global_step(7);
  response.set_train_steps(100);
  response.mutable_training_time()->set_seconds(3);
  response.mutable_training_time()->set_nanos(500'000'000);
  response.set_loss(0.5);
  response.set_examples_per_second(123);
  response.set_last_checkpoint_step(5);
  response.set_epoch(2);
  response.set_example_unit("words");

  const JobStatus status = DecodeStatus(response);

  EXPECT_EQ(status.job_name, "fashion");
  EXPECT_EQ(status.job_id, "id");
  EXPECT_EQ(status.state, JobState::kFailed);
  EXPECT_EQ(status.reason, "why");
  EXPECT_EQ(status.step, 7);
  EXPECT_EQ(status.train_steps, 100);
  EXPECT_EQ(status.training_time, absl::Milliseconds(3500));
  EXPECT_EQ(status.loss, 0.5);
  EXPECT_EQ(status.examples_per_second, 123);
  EXPECT_EQ(status.last_checkpoint_step, 5);
  EXPECT_EQ(status.epoch, 2u);
  EXPECT_EQ(status.example_unit, "words");
  EXPECT_FALSE(status.evaluation.has_value());
}

TEST(StatusCodecTest, DeathsAreTakenOver) {
  v1::GetStatusResponse response;
  v1::DeathStatus& death = *response.add_deaths();
  death.set_task("worker 1");
  death.set_redone("step 3");
  death.mutable_since()->set_seconds(9);
  response.add_deaths()->mutable_stood_still()->set_seconds(2);

  const JobStatus status = DecodeStatus(response);

  ASSERT_EQ(status.deaths.size(), 2u);
  EXPECT_EQ(status.deaths[0].redone, "step 3");
  EXPECT_EQ(status.deaths[0].since, absl::Seconds(9));
  EXPECT_FALSE(status.deaths[0].stood_still.has_value());
  EXPECT_EQ(status.deaths[1].stood_still, absl::Seconds(2));
}

TEST(StatusCodecTest, MembersAndTheirProgressAreTakenOver) {
  v1::GetStatusResponse response;
  v1::MemberStatus& worker = *response.add_members();
  worker.set_task("worker 0");
  worker.set_state(v1::MEMBER_ALIVE);
  worker.mutable_since_heartbeat()->set_nanos(250'000'000);
  v1::WorkerProgress& progress = *worker.mutable_progress();
  progress.set_local_step(8);
  progress.set_passes(9);
  progress.set_accepted(7);
  progress.set_stale(2);
  progress.mutable_waiting()->set_seconds(4);
  progress.set_activity("pulls");
  progress.set_activity_kind(v1::ACTIVITY_WAITS);
  progress.mutable_activity_age()->set_seconds(1);
  response.add_members()->set_task("ps 0");

  const JobStatus status = DecodeStatus(response);

  ASSERT_EQ(status.members.size(), 2u);
  EXPECT_EQ(status.members[0].since_heartbeat, absl::Milliseconds(250));
  ASSERT_TRUE(status.members[0].counts.has_value());
  const WorkerCounts& counts = *status.members[0].counts;
  EXPECT_EQ(counts.local_step, 8);
  EXPECT_EQ(counts.passes, 9);
  EXPECT_EQ(counts.accepted, 7);
  EXPECT_EQ(counts.stale, 2);
  EXPECT_EQ(counts.waiting, absl::Seconds(4));
  EXPECT_EQ(counts.activity, "pulls");
  EXPECT_FALSE(counts.computes);
  // Old by the age of the heartbeat that told it, 0.25 s, and by 1 s then.
  EXPECT_EQ(counts.activity_age, absl::Seconds(1.25));
  EXPECT_FALSE(status.members[1].since_heartbeat.has_value());
  EXPECT_FALSE(status.members[1].counts.has_value());
}

TEST(StatusCodecTest, EveryStateOfAMemberIsKnown) {
  v1::GetStatusResponse response;
  for (int value = v1::MemberState_MIN; value <= v1::MemberState_MAX; ++value) {
    v1::MemberStatus& member = *response.add_members();
    member.set_state(static_cast<v1::MemberState>(value));
    member.mutable_progress()->set_activity_kind(v1::ACTIVITY_COMPUTES);
  }
  response.add_members()->set_state(static_cast<v1::MemberState>(77));

  const JobStatus status = DecodeStatus(response);

  // They have the same numbers here.
  for (int value = v1::MemberState_MIN; value <= v1::MemberState_MAX; ++value) {
    EXPECT_EQ(static_cast<int>(status.members[value].state), value);
    EXPECT_TRUE(status.members[value].counts->computes);
  }
  EXPECT_EQ(status.members.back().state, MemberState::kUnknown);
}

TEST(StatusCodecTest, ScoresAndWaitsAreTakenOver) {
  v1::GetStatusResponse response;
  response.mutable_evaluation()->set_global_step(5);
  response.mutable_evaluation()->set_auc(0.75);
  response.mutable_evaluation()->set_accuracy(0.75);
  v1::WaitStatus& wait = *response.add_waits();
  wait.set_owner("step 8");
  wait.set_waits_for("worker 1");
  wait.mutable_since()->set_seconds(6);

  const JobStatus status = DecodeStatus(response);

  ASSERT_TRUE(status.evaluation.has_value());
  EXPECT_EQ(status.evaluation->step, 5);
  EXPECT_EQ(status.evaluation->accuracy, 0.75);
  EXPECT_EQ(status.evaluation->auc, 0.75);
  ASSERT_EQ(status.waits.size(), 1u);
  EXPECT_EQ(status.waits[0].owner, "step 8");
  EXPECT_EQ(status.waits[0].waits_for, "worker 1");
  EXPECT_EQ(status.waits[0].since, absl::Seconds(6));
}

TEST(StatusCodecTest, EveryStateOfTheContractIsKnown) {
  v1::GetStatusResponse response;
  for (int value = v1::JOB_STARTING; value <= v1::JobState_MAX; ++value) {
    response.set_state(static_cast<v1::JobState>(value));
    EXPECT_NE(DecodeStatus(response).state, JobState::kUnknown) << value;
  }
}

TEST(StatusCodecTest, AStateOfANewerChiefIsUnknown) {
  v1::GetStatusResponse response;
  response.set_state(static_cast<v1::JobState>(77));

  EXPECT_EQ(DecodeStatus(response).state, JobState::kUnknown);
}

TEST(StatusCodecTest, DurationsBeyondTheirRangeDoNoHarm) {
  v1::GetStatusResponse response;
  response.mutable_training_time()->set_seconds(
      std::numeric_limits<int64_t>::max());
  response.mutable_training_time()->set_nanos(
      std::numeric_limits<int32_t>::max());

  EXPECT_GT(DecodeStatus(response).training_time, absl::Hours(1e9));
}

}  // namespace
}  // namespace lockstep
