#include "worker/hosted/hosted_roles.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::LocalWorker;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::Not;

// A job of two workers alone; worker 0 hosts the chief.
class HostedRolesTest : public ::testing::Test {
 protected:
  HostedRolesTest() {
    job_.job().strategy.kind = StrategyKind::kMultiWorkerMirrored;
  }

  Cluster ClusterOf(int worker) const {
    return job_.ClusterOf("worker", worker).WithMirrors().value();
  }
  absl::StatusOr<std::unique_ptr<HostedRoles>> Start(int worker) {
    HostedRoles::Options options;
    options.job.file = directory_.Join("job.textproto");
    std::ofstream(options.job.file) << ToProto(job_.job()).DebugString();
    options.state_dir = job_.state_directory();
    return HostedRoles::Start(ClusterOf(worker), options, Clock::Real());
  }
  std::unique_ptr<LocalWorker> StartWorker(int worker) {
    return std::make_unique<LocalWorker>(
        Worker::Make(ClusterOf(worker), {.device = "cpu"}, Clock::Real()));
  }

  const TempDir directory_;
  LocalJob job_{{.servers = 0, .workers = 2, .chief = false}};
};

TEST_F(HostedRolesTest, WorkersWithTheirRolesAreAWholeJob) {
  auto roles0 = Start(0);
  auto roles1 = Start(1);
  ASSERT_THAT(roles0, IsOk());
  ASSERT_THAT(roles1, IsOk());
  auto worker0 = StartWorker(0);
  auto worker1 = StartWorker(1);

  EXPECT_THAT(worker0->Wait(), IsOk());
  EXPECT_THAT(worker1->Wait(), IsOk());
  EXPECT_THAT((*roles1)->Wait(), IsOk());
  EXPECT_THAT((*roles0)->Wait(), IsOk());
  EXPECT_THAT((*roles0)->Metrics().ToText(), Not(IsEmpty()));
}

TEST_F(HostedRolesTest, AMirrorThatHasToGoStopsTheJobForAll) {
  job_.job().train_steps = 1'000'000;
  auto roles0 = Start(0);
  auto roles1 = Start(1);
  ASSERT_THAT(roles0, IsOk());
  ASSERT_THAT(roles1, IsOk());
  auto worker0 = StartWorker(0);
  auto worker1 = StartWorker(1);
  (*roles1)->SetOnStopped(
      [&](const absl::Status& why) { worker1->role().OnMirrorEnded(why); });
  while (worker1->role().progress().accepted < 5) {
    absl::SleepFor(absl::Milliseconds(1));
  }

  (*roles1)->RequestStop("maintenance");

  EXPECT_THAT((*roles0)->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("maintenance")));
  EXPECT_THAT((*roles1)->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker1->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker0->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(HostedRolesTest, AWorkerThatFailedTakesItsMirrorAlong) {
  auto roles = Start(1);
  ASSERT_THAT(roles, IsOk());

  (*roles)->OnWorkerEnded(absl::InvalidArgumentError("another model"));

  EXPECT_THAT((*roles)->Wait(), Not(IsOk()));
}

class ElasticRolesTest : public HostedRolesTest {
 protected:
  // The workers end with the job.
  ~ElasticRolesTest() override {
    if (!roles_.empty()) roles_[0]->RequestStop("the test is over");
  }

  // Starts all and waits until both workers train.
  void Begin() {
    job_.job().elastic_workers = true;
    job_.job().train_steps = 1'000'000;
    for (const int worker : {0, 1}) {
      auto roles = Start(worker);
      ASSERT_THAT(roles, IsOk());
      roles_.push_back(*std::move(roles));
    }
    for (const int worker : {0, 1}) workers_.push_back(StartWorker(worker));
    AwaitPasses(*workers_[1]);
  }

  // Waits until the worker has made some passes, or too long.
  static void AwaitPasses(LocalWorker& worker) {
    const int64_t enough = worker.role().progress().accepted + 5;
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (worker.role().progress().accepted < enough) {
      ASSERT_LT(absl::Now(), deadline);
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  std::vector<std::unique_ptr<HostedRoles>> roles_;
  std::vector<std::unique_ptr<LocalWorker>> workers_;
};

TEST_F(ElasticRolesTest, AMirrorThatFollowsItsWorkerStopsNoJob) {
  ASSERT_NO_FATAL_FAILURE(Begin());
  EXPECT_TRUE(roles_[0]->carries_job());
  EXPECT_FALSE(roles_[1]->carries_job());

  workers_[1]->role().RequestStop("maintenance");
  const absl::Status left = workers_[1]->Wait();
  EXPECT_THAT(left,
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("maintenance")));
  roles_[1]->OnWorkerEnded(left);
  EXPECT_THAT(roles_[1]->Wait(), StatusIs(absl::StatusCode::kCancelled));

  AwaitPasses(*workers_[0]);
  roles_[0]->RequestStop("enough");
  EXPECT_THAT(roles_[0]->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
}

TEST_F(ElasticRolesTest, AMirrorWhoseWorkerHasNoInputIsDone) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  workers_[1]->role().RequestStop("no more input");
  EXPECT_THAT(workers_[1]->Wait(), StatusIs(absl::StatusCode::kCancelled));
  roles_[1]->OnWorkerEnded(absl::OkStatus());

  EXPECT_THAT(roles_[1]->Wait(), IsOk());
}

TEST_F(ElasticRolesTest, AMirrorHearsThatTheCheckpointHasItsState) {
  ASSERT_NO_FATAL_FAILURE(Begin());

  roles_[0]->RequestStop("enough");
  const absl::Status heard = workers_[1]->Wait();
  EXPECT_THAT(heard, StatusIs(absl::StatusCode::kCancelled));
  roles_[1]->OnWorkerEnded(heard);

  for (const auto& roles : roles_) {
    EXPECT_THAT(roles->Wait(), StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_TRUE(std::filesystem::is_empty(job_.state_directory()));
}

TEST_F(HostedRolesTest, AChiefWithoutAJobIsRefused) {
  EXPECT_THAT(HostedRoles::Start(ClusterOf(0), {}, Clock::Real()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("job file")));
}

TEST(NoHostedRolesTest, AJobWithTasksForAllHasNone) {
  const LocalJob job({.workers = 1});
  EXPECT_THAT(HostedRoles::Start(job.ClusterOf("worker", 0), {}, Clock::Real()),
              IsOkAndHolds(IsNull()));
}

}  // namespace
}  // namespace lockstep::worker
