// Sessions in a job with another worker.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/other_worker.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/session.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// A job of two workers, whose steps have the gradient of one.
class SessionOfTwoTest : public SessionFixture {
 protected:
  explicit SessionOfTwoTest(const LocalJob::Options& options = {.workers = 2})
      : SessionFixture(options) {
    job_.job().train_steps = 1'000'000;
    job_.job().replicas_to_aggregate = 1;
    job_.job().total_num_replicas = 2;
  }

  // Returns true with a step at hand.
  static bool Next(Session& session) {
    SessionStep step;
    absl::StatusOr<Session::Turn> turn;
    do {
      turn = session.Next(absl::Seconds(1), step);
    } while (turn.ok() && *turn == Session::Turn::kNothing);
    return turn.ok() && *turn == Session::Turn::kStep;
  }
};

TEST_F(SessionOfTwoTest, AStepThatIsOverLeavesItsMemoryToTheLoop) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  OtherWorker other(job_.ClusterOf("worker", 1), Variables());
  const auto aborted = StatusIs(absl::StatusCode::kAborted);
  ASSERT_TRUE(Next(**session));
  absl::Status wanted;
  while ((wanted = (*session)->CheckWanted()).ok()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_THAT(wanted, aborted);
  const std::byte* const value = (*session)->value(0).data();
  EXPECT_THAT((*session)->TakeValue(0), aborted);
  EXPECT_EQ((*session)->value(0).data(), value);
  EXPECT_THAT((*session)->Absent(0), aborted);
  EXPECT_THAT((*session)->Finish(1, 8), aborted);
  EXPECT_TRUE(Next(**session));

  session->reset();
  chief.chief().RequestStop("the test is over");
  EXPECT_THAT(other.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

// Without a checkpoint, the job is done at once.
TEST_F(SessionOfTwoTest, AJobThatIsDoneLeavesASlowProgramTimeForItsLastValues) {
  job_.job().train_steps = 500;
  job_.job().checkpoint = {};
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  OtherWorker other(job_.ClusterOf("worker", 1), Variables());
  ASSERT_TRUE(Next(**session));
  EXPECT_THAT(other.Wait(), IsOk());
  absl::SleepFor(absl::Seconds(1));  // ten heartbeats
  while ((*session)->CheckWanted().ok()) absl::SleepFor(absl::Milliseconds(1));

  EXPECT_FALSE(Next(**session));

  EXPECT_THAT((*session)->end(), IsOk());
  EXPECT_EQ((*session)->last_step(), 500);
}

// The same without a chief task: worker 0 hosts the chief.
class SessionWithChiefTest : public SessionOfTwoTest {
 protected:
  SessionWithChiefTest() : SessionOfTwoTest({.workers = 2, .chief = false}) {
    job_.job().data.epochs = 1;
  }

  std::string JobFile() {
    const std::string path = job_.directory().Join("job.textproto");
    std::ofstream(path) << ToProto(job_.job()).DebugString();
    return path;
  }
};

TEST_F(SessionWithChiefTest, AFaultAfterTheEndOfTheInputStopsTheJob) {
  auto server = StartServer(job_);
  auto session = Join(JobFile());
  ASSERT_THAT(session, IsOk());
  OtherWorker other(job_.ClusterOf("worker", 1), Variables());
  ASSERT_TRUE(Next(**session));
  (*session)->EndInput();
  SessionStep step;
  // The worker's part ends meanwhile, but not that of the chief.
  EXPECT_THAT((*session)->Next(absl::Seconds(2), step),
              IsOkAndHolds(Session::Turn::kNothing));

  (*session)->Fail("KeyError: 'label'");

  const auto turn = (*session)->Next(absl::Seconds(60), step);
  EXPECT_THAT(turn, IsOkAndHolds(Session::Turn::kEnded));
  // Lets the test end if it fails.
  (*session)->RequestStop("the test is over");
  session->reset();
  EXPECT_THAT(other.Wait(), StatusIs(absl::StatusCode::kCancelled,
                                     HasSubstr("KeyError: 'label'")));
}

}  // namespace
}  // namespace lockstep::worker
