#include "worker/hosted/hosted_mirror.h"

#include <string>

#include "absl/time/clock.h"
#include "common/base/stop_status.h"
#include "common/process/process.h"
#include "common/program/main_support.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::LocalWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// A job of workers alone, whose chief is not there. HostedRolesTest has whole
// jobs.
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
    return HostedMirror::Start(ClusterOf(worker), options, Clock::Real());
  }
  std::unique_ptr<LocalWorker> StartWorker(int worker) {
    return std::make_unique<LocalWorker>(
        Worker::Make(ClusterOf(worker), {.device = "cpu"}, Clock::Real()));
  }
  LocalJob job_{{.servers = 0, .workers = 2, .chief = false}};
};

TEST_F(HostedMirrorTest, StoppedBeforeTheChiefIsThereItEndsItsWorker) {
  auto mirror = StartMirror(1);
  ASSERT_THAT(mirror, IsOk());
  auto worker = StartWorker(1);
  (*mirror)->SetOnStopped(
      [&](const absl::Status& why) { worker->role().OnMirrorEnded(why); });

  (*mirror)->RequestStop("changed my mind");

  EXPECT_THAT(worker->Wait(), StatusIs(absl::StatusCode::kCancelled));
  // Until then it may still be calling the worker.
  EXPECT_THAT((*mirror)->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

// The exit code then asks for no restart, which would undo the stop.
TEST_F(HostedMirrorTest, WorkerOfAMirrorThatHeardTheStopFirstIsHeldToo) {
  for (const bool hold : {true, false}) {
    auto worker = StartWorker(1);

    worker->role().OnMirrorEnded(StoppedStatus("lockstep stop", hold));

    const absl::Status end = worker->Wait();
    EXPECT_THAT(end, StatusIs(absl::StatusCode::kCancelled,
                              HasSubstr("lockstep stop")));
    EXPECT_EQ(ExitCodeOf(end), hold ? kExitHeld : kExitStopped);
  }
}

TEST_F(HostedMirrorTest, WorkerOfAMirrorThatTheChiefDidNotLetInMayComeBack) {
  auto worker = StartWorker(1);

  worker->role().OnMirrorEnded(absl::UnavailableError("the chief is away"));

  const absl::Status end = worker->Wait();
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable,
                            HasSubstr("the chief is away")));
  EXPECT_EQ(ExitCodeOf(end), kExitLost);
}

// A restart would only be refused again.
TEST_F(HostedMirrorTest, WorkerOfAMirrorThatTheChiefRefusedMustNotComeBack) {
  auto worker = StartWorker(1);

  worker->role().OnMirrorEnded(absl::InvalidArgumentError("a full disk"));

  const absl::Status end = worker->Wait();
  EXPECT_THAT(end,
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("a full disk")));
  EXPECT_EQ(ExitCodeOf(end), kExitFailed);
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
