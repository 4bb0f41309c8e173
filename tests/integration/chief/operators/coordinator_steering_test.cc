// Operators steer a job through its chief.

#include "absl/time/clock.h"
#include "chief/operators/coordinator_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/chief/operators/coordinator_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using Stub = v1::CoordinatorService::Stub;

class CoordinatorSteeringTest : public CoordinatorFixture {
 protected:
  using CoordinatorFixture::CoordinatorFixture;

  // A task that must end requests a stop.
  absl::Status StopFrom(const std::string& type, int index) {
    v1::StopRequest request;
    request.set_reason("maintenance");
    request.set_task_type(type);
    request.set_task_index(index);
    return Call(*stub_, &Stub::Stop, request).status();
  }
};

JobConfig ElasticMirrors() {
  JobConfig job = Job();
  job.elastic_workers = true;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  return job;
}

class ElasticMirrorsSteeringTest : public CoordinatorSteeringTest {
 protected:
  ElasticMirrorsSteeringTest()
      : CoordinatorSteeringTest(/*workers=*/2, /*has_evaluator=*/true,
                                ElasticMirrors()) {}
};

TEST_F(CoordinatorSteeringTest, OperatorCanAskForAStop) {
  v1::StopRequest request;
  request.set_reason("enough");

  EXPECT_OK(Call(*stub_, &Stub::Stop, request));

  EXPECT_EQ(stopped_, "enough");
}

TEST_F(CoordinatorSteeringTest, ServerThatMustEndStopsTheJob) {
  EXPECT_OK(StopFrom("ps", 1));

  EXPECT_EQ(stopped_, "maintenance");
}

// Its machine was suspended, and another process has taken its place.
TEST_F(CoordinatorSteeringTest, ServerThatWasReplacedDoesNotStopTheJob) {
  v1::Identity server = Worker(1);
  server.set_task_type("ps");
  server.set_task_index(0);
  server.set_incarnation(9);
  ASSERT_OK(Register(Registration(server)));
  v1::StopRequest request;
  request.set_task_type("ps");
  request.set_incarnation(8);
  EXPECT_THAT(Call(*stub_, &Stub::Stop, request).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(stopped_.has_value());

  for (const uint64_t incarnation : {9, 10}) {
    stopped_.reset();
    request.set_incarnation(incarnation);
    EXPECT_OK(Call(*stub_, &Stub::Stop, request));
    EXPECT_TRUE(stopped_.has_value()) << incarnation;
  }
}

TEST_F(CoordinatorSteeringTest, ServerOfAnotherJobDoesNotStopThisOne) {
  v1::StopRequest request;
  request.set_task_type("ps");
  request.set_job_id("another");
  EXPECT_THAT(Call(*stub_, &Stub::Stop, request).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(stopped_.has_value());
  request.set_job_id(kJobId);
  EXPECT_OK(Call(*stub_, &Stub::Stop, request));
  EXPECT_TRUE(stopped_.has_value());
}

TEST_F(CoordinatorSteeringTest, StopFromATaskThatCannotBeIsRefused) {
  EXPECT_THAT(StopFrom("printer", 1),
              StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_FALSE(stopped_.has_value());
}

// Its process is stopped before it has registered, so that it cannot know that
// the job goes on.
TEST_F(ElasticMirrorsSteeringTest, MirrorThatMustEndDoesNotStopTheJob) {
  EXPECT_OK(StopFrom("ps", 1));

  EXPECT_FALSE(stopped_.has_value());
}

TEST_F(ElasticMirrorsSteeringTest, FirstMirrorAndOperatorsStopTheJob) {
  EXPECT_OK(StopFrom("ps", 0));
  EXPECT_EQ(stopped_, "maintenance");
  v1::StopRequest request;
  request.set_reason("enough");

  EXPECT_OK(Call(*stub_, &Stub::Stop, request));

  EXPECT_EQ(stopped_, "enough");
}

TEST_F(CoordinatorSteeringTest, AHeldJobIsSaidToBeSo) {
  const v1::Identity worker = Worker(1);
  ASSERT_OK(Register(Registration(worker)));
  v1::StopRequest request;
  request.set_hold(true);
  ASSERT_OK(Call(*stub_, &Stub::Stop, request));
  EXPECT_TRUE(hold_);

  table_.SetState(JobState::kStopped, "lunch", clock_.Now(), true);

  const auto heard = Heartbeat(worker);
  ASSERT_OK(heard);
  EXPECT_TRUE(heard->hold());
}

TEST_F(CoordinatorSteeringTest, AChangeIsNotedUnderARevision) {
  v1::ChangeSettingsRequest request;
  request.set_replicas_to_aggregate(1);
  request.set_paused(true);
  EXPECT_THAT(Call(*stub_, &Stub::ChangeSettings, request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  settings_.Open(chief::InitialSettings(Job()));

  const auto response = Call(*stub_, &Stub::ChangeSettings, request);

  ASSERT_OK(response);
  EXPECT_EQ(response->revision(), 1);
  EXPECT_EQ(settings_.wanted().replicas_to_aggregate, 1);
  EXPECT_TRUE(settings_.wanted().paused);
}

TEST_F(CoordinatorSteeringTest, StatusShowsTheSettingsInEffect) {
  table_.SetSettings({.revision = 3,
                      .replicas_to_aggregate = 1,
                      .learning_rate_scale = 0.5,
                      .workers = {1}},
                     absl::Now());

  const auto status = Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest());

  ASSERT_OK(status);
  EXPECT_EQ(status->settings().revision(), 3);
  EXPECT_EQ(status->learning_rate(), 0.5 * Job().learning_rate.base);
}

TEST_F(CoordinatorSteeringTest,
       WorkerThatRegistersLaterGetsTheChangedSettings) {
  table_.SetSettings(
      {.revision = 1, .replicas_to_aggregate = 1, .workers = {1}}, absl::Now());

  const auto response = Register(Registration(Task(TaskType::kWorker, 1, 5)));

  ASSERT_OK(response);
  EXPECT_EQ(response->job().replicas_to_aggregate(), 1);
  EXPECT_EQ(response->num_workers(), 1);
  EXPECT_EQ(response->data_shard(), 0);
}

}  // namespace
}  // namespace lockstep::testing
