#include "worker/hosted/hosted_mirror.h"

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/hosted/hosted_chief.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::LocalWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// A job of workers alone; worker 0 hosts the chief.
class HostedMirrorTest : public ::testing::Test {
 protected:
  HostedMirrorTest() {
    job_.job().strategy.kind = StrategyKind::kMultiWorkerMirrored;
  }

  Cluster ClusterOf(int worker) const {
    return job_.ClusterOf("worker", worker).WithMirrors().value();
  }
  absl::StatusOr<std::unique_ptr<HostedMirror>> StartMirror(int worker) {
    server::PsServer::Options options;
    options.state_dir = job_.state_directory();
    if (chief_ != nullptr && worker == 0) {
      options.more_services = chief_->services();
    }
    return HostedMirror::Start(ClusterOf(worker), options, Clock::Real());
  }
  std::unique_ptr<LocalWorker> StartWorker(int worker) {
    return std::make_unique<LocalWorker>(
        Worker::Make(ClusterOf(worker), {.device = "cpu"}, Clock::Real()));
  }
  void StartChief() {
    chief_ =
        HostedChief::Start(ClusterOf(0), job_.job(), Clock::Real(), {}).value();
  }

  LocalJob job_{{.servers = 0, .workers = 2, .chief = false}};
  std::unique_ptr<HostedChief> chief_;
};

TEST_F(HostedMirrorTest, WorkersWithMirrorsTrainWithoutServers) {
  StartChief();
  auto mirror0 = StartMirror(0);
  auto mirror1 = StartMirror(1);
  ASSERT_THAT(mirror0, IsOk());
  ASSERT_THAT(mirror1, IsOk());
  auto worker0 = StartWorker(0);
  auto worker1 = StartWorker(1);

  EXPECT_THAT(worker0->Wait(), IsOk());
  EXPECT_THAT(worker1->Wait(), IsOk());
  EXPECT_THAT((*mirror0)->Wait(), IsOk());
  EXPECT_THAT((*mirror1)->Wait(), IsOk());
  EXPECT_THAT(chief_->Wait(), IsOk());
}

TEST_F(HostedMirrorTest, MirrorThatHasToGoStopsTheJobAndItsWorker) {
  job_.job().train_steps = 1'000'000;
  StartChief();
  auto mirror0 = StartMirror(0);
  auto mirror1 = StartMirror(1);
  ASSERT_THAT(mirror0, IsOk());
  ASSERT_THAT(mirror1, IsOk());
  auto worker0 = StartWorker(0);
  auto worker1 = StartWorker(1);
  (*mirror1)->SetOnStopped(
      [&](const std::string& why) { worker1->role().RequestStop(why); });
  while (worker1->role().progress().accepted < 5) {
    absl::SleepFor(absl::Milliseconds(1));
  }

  (*mirror1)->RequestStop("maintenance");

  EXPECT_THAT(chief_->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("maintenance")));
  EXPECT_THAT(worker1->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker0->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(HostedMirrorTest, StoppedBeforeTheChiefIsThereItEndsItsWorker) {
  auto mirror = StartMirror(1);
  ASSERT_THAT(mirror, IsOk());
  auto worker = StartWorker(1);
  (*mirror)->SetOnStopped(
      [&](const std::string& why) { worker->role().RequestStop(why); });

  (*mirror)->RequestStop("changed my mind");

  EXPECT_THAT(worker->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(HostedMirrorTest, PortThatIsTakenIsNamed) {
  auto other = GrpcServer::Start(job_.Address("worker", 1), {});
  ASSERT_THAT(other, IsOk());

  EXPECT_THAT(StartMirror(1).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(job_.Address("worker", 1))));
}

}  // namespace
}  // namespace lockstep::worker
