#include "worker/session/program_member.h"

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/program_workload.h"
#include "worker/session/session_variables.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

class ProgramMemberTest : public SessionFixture {
 protected:
  explicit ProgramMemberTest(const testing::LocalJob::Options& options = {})
      : SessionFixture(options) {}

  absl::StatusOr<std::unique_ptr<ProgramMember>> Make(
      const Session::Options& options) {
    return ProgramMember::Make(job_.ClusterOf("worker", 0), {}, options,
                               workload_);
  }

  const std::vector<SessionVariable> variables_ = Variables();
  ProgramWorkload workload_{SpecsOf(variables_), InitialOf(variables_)};
};

TEST_F(ProgramMemberTest, AProcessThatHostsNoRoleCarriesNoJob) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto member = Make({});
  ASSERT_THAT(member, IsOk());
  EXPECT_FALSE((*member)->carries_job());

  (*member)->RequestStop("the test stops it");

  EXPECT_THAT((*member)->Run(), StatusIs(absl::StatusCode::kCancelled));
  chief.chief().RequestStop("the test is over");
}

TEST_F(ProgramMemberTest, AFaultIsTheReasonOfTheJobsEnd) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto member = Make({});
  ASSERT_THAT(member, IsOk());
  std::thread loop([&] { (*member)->Run().IgnoreError(); });
  Handover::Offer offer;
  while (workload_.handover().Take(absl::Seconds(1), offer) ==
         Handover::Stage::kNothing) {
  }

  (*member)->Fail("ValueError: no such file");

  loop.join();
  EXPECT_THAT(chief.Wait(), StatusIs(absl::StatusCode::kAborted,
                                     HasSubstr("ValueError: no such file")));
}

class HostingMemberTest : public ProgramMemberTest {
 protected:
  HostingMemberTest() : ProgramMemberTest({.chief = false}) {}
};

TEST_F(HostingMemberTest, AProcessWithTheChiefStopsTheJob) {
  const std::string path = job_.directory().Join("job.textproto");
  std::ofstream(path) << ToProto(job_.job()).DebugString();
  auto server = StartServer(job_);
  auto member = Make({.job_file = path});
  ASSERT_THAT(member, IsOk());
  EXPECT_TRUE((*member)->carries_job());

  (*member)->RequestStop("the test stops it");

  EXPECT_THAT((*member)->Run(), StatusIs(absl::StatusCode::kCancelled,
                                         HasSubstr("the test stops it")));
}

}  // namespace
}  // namespace lockstep::worker
