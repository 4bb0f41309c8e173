// Sessions in a job with another worker.

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/handover.h"
#include "worker/session/program_workload.h"
#include "worker/session/session.h"
#include "worker/session/session_variables.h"
#include "worker/session/training_member.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// Worker 1, whose gradients are zeros. It has no session, because the process
// of the test has one already.
class OtherWorker {
 public:
  OtherWorker(const LocalJob& job,
              const std::vector<SessionVariable>& variables)
      : workload_(SpecsOf(variables), InitialOf(variables)),
        member_(TrainingMember::Make(job.ClusterOf("worker", 1), {}, workload_,
                                     Clock::Real())) {
    EXPECT_THAT(member_, IsOk());
    if (!member_.ok()) return;
    loop_ =
        std::thread([this] { workload_.handover().End((*member_)->Run()); });
    program_ = std::thread([this] { Compute(); });
  }
  ~OtherWorker() {
    if (!member_.ok()) return;
    (*member_)->RequestStop("the test is over");
    Wait().IgnoreError();
  }

  // Waits for the end of its part, and returns it.
  absl::Status Wait() {
    if (loop_.joinable()) loop_.join();
    if (program_.joinable()) program_.join();
    return workload_.handover().end();
  }

 private:
  void Compute() {
    Handover& handover = workload_.handover();
    while (true) {
      const Handover::Stage stage = handover.Take(absl::Seconds(1));
      if (stage == Handover::Stage::kEnded) return;
      if (stage != Handover::Stage::kPass) continue;
      for (size_t v = workload_.variables().size(); v > 0; --v) {
        handover.Ready(v - 1).IgnoreError();
      }
      handover.Done({.loss = 0, .examples = 8}).IgnoreError();
    }
  }

  ProgramWorkload workload_;
  absl::StatusOr<std::unique_ptr<TrainingMember>> member_;
  std::thread loop_;
  std::thread program_;
};

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
  OtherWorker other(job_, Variables());
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
  OtherWorker other(job_, Variables());
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
