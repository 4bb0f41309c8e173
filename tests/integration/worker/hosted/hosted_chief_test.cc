#include "worker/hosted/hosted_chief.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(HostedChiefTest, Worker0LeadsAJobWithoutAChiefTask) {
  LocalJob job({.workers = 2, .chief = false});
  auto chief = HostedChief::Start(job.ClusterOf("worker", 0), job.job(),
                                  Clock::Real(), {});
  ASSERT_THAT(chief, IsOk());
  ASSERT_THAT((*chief)->Serve(job.Address("worker", 0)), IsOk());
  auto server = StartServer(job);
  auto worker0 = StartWorker(job, 0);
  auto worker1 = StartWorker(job, 1);

  EXPECT_THAT((*chief)->Wait(), IsOk());
  EXPECT_THAT(worker0->Wait(), IsOk());
  EXPECT_THAT(worker1->Wait(), IsOk());
}

TEST(HostedChiefTest, StopEndsTheJob) {
  LocalJob job({.chief = false});
  job.job().train_steps = 1'000'000;
  auto chief = HostedChief::Start(job.ClusterOf("worker", 0), job.job(),
                                  Clock::Real(), {});
  ASSERT_THAT(chief, IsOk());
  ASSERT_THAT((*chief)->Serve(job.Address("worker", 0)), IsOk());
  auto server = StartServer(job);
  auto worker = StartWorker(job);
  while (worker->role().progress().accepted < 5) {
    absl::SleepFor(absl::Milliseconds(1));
  }

  (*chief)->RequestStop("enough");

  EXPECT_THAT((*chief)->Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_THAT(worker->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(HostedChiefTest, PortThatIsTakenIsNamed) {
  LocalJob job({.chief = false});
  auto other = GrpcServer::Start(job.Address("worker", 0), {});
  ASSERT_THAT(other, IsOk());

  auto chief = HostedChief::Start(job.ClusterOf("worker", 0), job.job(),
                                  Clock::Real(), {});
  ASSERT_THAT(chief, IsOk());
  EXPECT_THAT((*chief)->Serve(job.Address("worker", 0)),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(job.Address("worker", 0))));
}

}  // namespace
}  // namespace lockstep::worker
