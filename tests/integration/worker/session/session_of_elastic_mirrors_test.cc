// A session whose process hosts a mirror, but not the chief, of a job with
// elastic workers: the job goes on without it.

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "common/job/codec/job_config_codec.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/other_worker.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/status_matchers.h"
#include "worker/hosted/hosted_roles.h"
#include "worker/session/session.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// The session is worker 1; the other worker hosts the chief.
class SessionOfElasticMirrorsTest : public SessionFixture {
 protected:
  SessionOfElasticMirrorsTest()
      : SessionFixture({.servers = 0, .workers = 2, .chief = false}) {
    job_.job().strategy.kind = StrategyKind::kMultiWorkerMirrored;
    job_.job().elastic_workers = true;
    job_.job().train_steps = 1'000'000;
  }
  // The workers end with the job.
  ~SessionOfElasticMirrorsTest() override {
    session_.reset();
    if (roles_ != nullptr) roles_->RequestStop("the test is over");
  }

  // Starts all and trains for some steps.
  void Begin() {
    const Cluster cluster = job_.ClusterOf("worker", 0).WithMirrors().value();
    HostedRoles::Options options;
    options.job.file = job_.directory().Join("job.textproto");
    std::ofstream(options.job.file) << ToProto(job_.job()).DebugString();
    options.state_dir = job_.state_directory();
    auto roles = HostedRoles::Start(cluster, options, Clock::Real());
    ASSERT_THAT(roles, IsOk());
    roles_ = *std::move(roles);
    other_ = std::make_unique<OtherWorker>(cluster, Variables());
    const std::string path = job_.directory().Join("tf_config-1");
    std::ofstream(path) << job_.TfConfigOf("worker", 1);
    auto session = Session::Join(
        {.tf_config = path, .state_dir = job_.state_directory()}, Variables());
    ASSERT_THAT(session, IsOk());
    session_ = *std::move(session);
    Train(*session_, 3);
  }

  // Expects the job to be stopped for `reason`, and not before.
  void ExpectStop(const std::string& reason) {
    roles_->RequestStop(reason);
    EXPECT_THAT(roles_->Wait(),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr(reason)));
  }

  std::unique_ptr<HostedRoles> roles_;
  std::unique_ptr<OtherWorker> other_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionOfElasticMirrorsTest, AStopIsForItsWorkerAlone) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_FALSE(session_->carries_job());

  session_->RequestStop("maintenance");
  Train(*session_);

  EXPECT_THAT(session_->end(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("maintenance")));
  EXPECT_EQ(session_->exit_code(), kExitStopped);
  ExpectStop("enough");
}

TEST_F(SessionOfElasticMirrorsTest, AProgramThatLeavesItsLoopIsDone) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  EXPECT_EQ(session_->exit_code(), kExitDone);
  session_.reset();

  ExpectStop("enough");
}

TEST_F(SessionOfElasticMirrorsTest, AProgramWithoutInputDoesNotAwaitTheJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  SessionStep step;
  absl::StatusOr<Session::Turn> turn;
  do {
    turn = session_->Next(absl::Seconds(1), step);
  } while (turn.ok() && *turn == Session::Turn::kNothing);
  ASSERT_THAT(turn, IsOk());

  session_->EndInput();
  Train(*session_);

  EXPECT_EQ(session_->exit_code(), kExitDone);
  ExpectStop("enough");
}

TEST_F(SessionOfElasticMirrorsTest, AFaultDoesNotStopTheJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  session_->Fail("KeyError: 'label'");
  Train(*session_);

  EXPECT_EQ(session_->exit_code(), kExitFailed);
  ExpectStop("enough");
}

}  // namespace
}  // namespace lockstep::worker
