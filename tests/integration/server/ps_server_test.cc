#include "server/ps_server.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(PsServerTest, PortThatIsTakenIsNamed) {
  LocalJob job({});
  auto other = GrpcServer::Start(job.Address("ps", 0), {});
  ASSERT_THAT(other, IsOk());

  EXPECT_THAT(StartServer(job)->Wait(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(job.Address("ps", 0))));
}

TEST(PsServerTest, StateDirectoryThatOthersMayEnterIsRefused) {
  LocalJob job({});
  ASSERT_EQ(chmod(job.state_directory().c_str(), 0777), 0);

  EXPECT_THAT(StartServer(job)->Wait(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr(job.state_directory())));
}

TEST(PsServerTest, ChiefThatNeverComesEndsTheWait) {
  LocalJob job({});
  PsServer::Options options;
  options.state_dir = job.state_directory();
  options.chief_wait = absl::Milliseconds(200);
  auto server = PsServer::Start(job.ClusterOf("ps", 0), options, Clock::Real());
  ASSERT_THAT(server, IsOk());

  EXPECT_THAT((*server)->Run(), StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr(job.Address("chief", 0))));
}

TEST(PsServerTest, ServerThatHasToGoStopsTheJobWithACheckpoint) {
  LocalJob job({});
  job.job().train_steps = 1'000'000;
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);
  while (worker->role().progress().accepted < 5) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(server->role().Metrics().ToText(), HasSubstr("step"));

  server->role().RequestStop("maintenance");

  EXPECT_THAT(chief.Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("maintenance")));
  EXPECT_THAT(server->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::server
