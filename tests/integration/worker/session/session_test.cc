#include "worker/session/session.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/session/session_fixture.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public SessionFixture {};

TEST_F(SessionTest, TheWorkersInitialValuesAreTrainedAndSaved) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ((*session)->last_step(), std::nullopt);
  Train(**session);
  EXPECT_THAT((*session)->end(), IsOk());
  EXPECT_EQ((*session)->exit_code(), 0);
  EXPECT_EQ((*session)->last_step(), 5);
  float last[2];
  std::memcpy(last, (*session)->value(0).data(), sizeof last);
  EXPECT_FLOAT_EQ(last[0], 0.59049F);  // 0.9 ^ 5
  EXPECT_FLOAT_EQ(last[1], -1.18098F);
  // A pass after the last step may begin, in vain.
  ASSERT_GE(numbers_.size(), 5U);
  numbers_.resize(5);
  EXPECT_THAT(numbers_, ElementsAre(0, 1, 2, 3, 4));
  session->reset();
  ASSERT_THAT(chief.Wait(), IsOk());

  const auto saved = CheckpointReader::Open(job_.checkpoints(), 5);
  ASSERT_THAT(saved, IsOk());
  float w[2];
  ASSERT_OK(saved->Read("w", w));
  EXPECT_EQ(w[0], last[0]);
  EXPECT_EQ(w[1], last[1]);
  float b[1];
  ASSERT_OK(saved->Read("b", b));
  EXPECT_EQ(b[0], 0);  // its gradient was absent
}

TEST_F(SessionTest, ANewChiefAndNewServersGoOnFromTheCheckpoint) {
  for (const int steps : {2, 4}) {
    job_.job().train_steps = steps;
    LocalChief chief(job_);
    auto server = StartServer(job_);
    auto session = Join();
    ASSERT_THAT(session, IsOk());
    Train(**session);
    session->reset();
    ASSERT_THAT(chief.Wait(), IsOk());
    given_ = {100, 100};  // not asked for where there is a checkpoint
  }
  const auto saved = CheckpointReader::Open(job_.checkpoints(), 4);
  ASSERT_THAT(saved, IsOk());
  float w[2];
  ASSERT_OK(saved->Read("w", w));
  EXPECT_FLOAT_EQ(w[0], 0.6561F);
}

TEST_F(SessionTest, AFileOfInitialValuesIsWhereAJobBegins) {
  const std::string first = job_.checkpoints();
  for (const bool warm : {false, true}) {
    if (warm) {
      job_.job().checkpoint.initial_values =
          first + "/step-00000005/model.safetensors";
      job_.job().checkpoint.directory = job_.directory().Join("second");
      job_.job().train_steps = 1;
    }
    LocalChief chief(job_);
    auto server = StartServer(job_);
    auto session = Join();
    ASSERT_THAT(session, IsOk());
    Train(**session);
    session->reset();
    ASSERT_THAT(chief.Wait(), IsOk());
  }
  const auto saved = CheckpointReader::Open(job_.job().checkpoint.directory, 1);
  ASSERT_THAT(saved, IsOk());
  float w[2];
  ASSERT_OK(saved->Read("w", w));
  EXPECT_FLOAT_EQ(w[0], 0.531441F);  // 0.9 ^ 6
}

TEST_F(SessionTest, AFileWithoutTheModelsVariablesEndsTheJobWithItsReason) {
  LocalJob other({});
  {
    LocalChief chief(other);  // softmax
    auto server = StartServer(other);
    auto worker = testing::StartWorker(other);
    ASSERT_THAT(worker->Wait(), IsOk());
    ASSERT_THAT(chief.Wait(), IsOk());
  }
  job_.job().checkpoint.initial_values =
      other.checkpoints() + "/step-00000020/model.safetensors";
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  Train(**session);
  EXPECT_THAT((*session)->end(),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("checkpoint.initial_values")));
  EXPECT_EQ((*session)->exit_code(), 1);
}

TEST_F(SessionTest, AProcessIsOneWorkerAtATime) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT(Join().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("one at a time")));
  Train(**session);
}

TEST_F(SessionTest, VariablesThatDoNotExistHaveNoMemory) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  for (const size_t variable : {0, 2}) {
    EXPECT_TRUE((*session)->value(variable).empty()) << variable;
    EXPECT_TRUE((*session)->gradient(variable).empty()) << variable;
    EXPECT_TRUE((*session)->rows(variable).empty()) << variable;
  }
  Train(**session);
  EXPECT_EQ((*session)->value(0).size(), 8U);
  EXPECT_TRUE((*session)->value(2).empty());
}

TEST_F(SessionTest, AProgramWithAFaultFailsTheJobAndIsNotStartedAgain) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  Train(**session, 1);
  (*session)->Fail("KeyError: 'label'");
  EXPECT_EQ((*session)->exit_code(), kExitFailed);
  Train(**session);
  EXPECT_EQ((*session)->exit_code(), kExitFailed);
  EXPECT_THAT(chief.Wait(), StatusIs(absl::StatusCode::kAborted,
                                     HasSubstr("KeyError: 'label'")));
}

// Waits for the next step.
void AwaitStep(Session& session, SessionStep& step) {
  absl::StatusOr<Session::Turn> turn;
  do {
    turn = session.Next(absl::Seconds(1), step);
    ASSERT_THAT(turn, IsOk());
  } while (*turn != Session::Turn::kStep);
}

TEST_F(SessionTest, AStepThatIsSkippedIsAnError) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  SessionStep step;
  ASSERT_NO_FATAL_FAILURE(AwaitStep(**session, step));
  EXPECT_THAT((*session)->Next(absl::Seconds(1), step).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no gradients yet")));
  const std::optional<SessionStep> again = (*session)->StepAgain();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->number, step.number);
  EXPECT_EQ(again->seed, step.seed);
  EXPECT_FALSE((*session)->is_taken(0));
  EXPECT_OK((*session)->TakeValue(0));
  EXPECT_TRUE((*session)->is_taken(0));
  EXPECT_OK((*session)->Ready(0));
  EXPECT_FALSE((*session)->StepAgain().has_value());
  EXPECT_THAT((*session)->Ready(0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("handed in before")));
  EXPECT_OK((*session)->Finish(0, 8));
  Train(**session);
}

TEST_F(SessionTest, AnImpossibleNumberOfExamplesHandsNothingIn) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  SessionStep step;
  ASSERT_NO_FATAL_FAILURE(AwaitStep(**session, step));
  for (const int64_t wrong : {int64_t{-3}, int64_t{1} << 31}) {
    EXPECT_THAT((*session)->Finish(0, wrong),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("it must be 0 to 2147483647")));
    EXPECT_TRUE((*session)->StepAgain().has_value());
  }
  EXPECT_OK((*session)->Finish(std::nan(""), 8));
  Train(**session);
  EXPECT_THAT((*session)->end(), IsOk());
}

TEST_F(SessionTest, NoGradientIsHandedInBeforeTheFirstStep) {
  LocalChief chief(job_);
  auto session = Join();  // there is no server, so no step
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT((*session)->Ready(2), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("model has 2")));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("no pass is open"));
  EXPECT_THAT((*session)->Ready(0), refused);
  EXPECT_THAT((*session)->Absent(0), refused);
  EXPECT_THAT((*session)->TakeValue(0), refused);
  auto server = StartServer(job_);
  Train(**session);
}

TEST_F(SessionTest, TakenValuesStayWhileTheNextOnesArrive) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  SessionStep step;
  float w = 1;
  float* before = nullptr;
  while (step.number < 4) {
    const auto turn = (*session)->Next(absl::Seconds(1), step);
    ASSERT_THAT(turn, IsOk());
    if (*turn != Session::Turn::kStep) continue;
    // Not before the next ones are taken.
    if (before != nullptr) {
      EXPECT_EQ(before[1], 77);
    }
    auto* taken = const_cast<float*>(
        reinterpret_cast<const float*>((*session)->value(0).data()));
    EXPECT_NE(taken, before);
    EXPECT_FLOAT_EQ(taken[0], w);
    EXPECT_FLOAT_EQ(taken[1], -2 * w);
    ASSERT_OK((*session)->TakeValue(0));
    EXPECT_NE(static_cast<const void*>((*session)->value(0).data()), taken);
    std::memcpy((*session)->gradient(0).data(), taken, 8);
    taken[1] = 77;
    ASSERT_OK((*session)->Ready(0));
    EXPECT_THAT((*session)->TakeValue(0),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("once a step is at hand")));
    ASSERT_OK((*session)->Finish(1, 8));
    EXPECT_THAT((*session)->TakeValue(1),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    before = taken;
    w *= 0.9F;
  }
  Train(**session);
}

TEST_F(SessionTest, AnEarlyStepHasItsValuesOnceTheyAreAwaited) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join("", /*early_passes=*/true);
  ASSERT_THAT(session, IsOk());
  SessionStep step;
  float w = 1;
  int early = 0;
  for (int made = 0; made < 5;) {
    const auto turn = (*session)->Next(absl::Seconds(1), step);
    ASSERT_THAT(turn, IsOk());
    ASSERT_NE(*turn, Session::Turn::kEnded);
    if (*turn != Session::Turn::kStep) continue;
    EXPECT_EQ(step.number, made);
    EXPECT_EQ(step.batch, made);
    EXPECT_THAT((*session)->AwaitValues(1, 2),
                StatusIs(absl::StatusCode::kInvalidArgument));
    ASSERT_OK((*session)->AwaitValues(0, 2));
    float values[2];
    std::memcpy(values, (*session)->value(0).data(), 8);
    EXPECT_FLOAT_EQ(values[0], w);
    EXPECT_FLOAT_EQ(values[1], -2 * w);
    if (step.early) {
      ++early;
      const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                    HasSubstr("BeginGradients()"));
      EXPECT_THAT((*session)->Ready(0), refused);
      EXPECT_THAT((*session)->TakeValue(0), refused);
      EXPECT_THAT((*session)->Finish(1, 8), refused);
    }
    while (!*(*session)->BeginGradients(absl::Seconds(1))) {
    }
    std::memcpy((*session)->gradient(0).data(), values, 8);
    ASSERT_OK((*session)->Ready(0));
    ASSERT_OK((*session)->Finish(1, 8));
    w *= 0.9F;
    ++made;
  }
  // All but the first, for which no push has brought values.
  EXPECT_EQ(early, 4);
  Train(**session);
  EXPECT_THAT((*session)->end(), IsOk());
}

// True if each call that a forked child makes is refused.
bool RefusesAll(Session& session) {
  SessionStep step;
  const absl::Status refusals[] = {
      session.Next(absl::ZeroDuration(), step).status(), session.Ready(0),
      session.Report({"norm", 1}), session.Examples(8, 0).status()};
  // Without effect on the parent, with which it shares its connections.
  session.EndInput();
  session.RequestStop("the child has ended");
  return std::all_of(std::begin(refusals), std::end(refusals),
                     absl::IsFailedPrecondition);
}

TEST_F(SessionTest, AForkedChildIsToldThatItIsNoWorker) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  int status = SIGALRM;
  // A lock of the allocator that another thread held at the fork stays locked
  // in the child, which then hangs until its alarm.
  for (int tries = 0; tries < 5 && status == SIGALRM; ++tries) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(RefusesAll(**session) ? 0 : 1);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0);
  Train(**session);
  EXPECT_THAT((*session)->end(), IsOk());
}

TEST_F(SessionTest, ASessionThatEndsEarlyLeavesTheJob) {
  LocalChief chief(job_);
  auto server = StartServer(job_);
  {
    auto session = Join();
    ASSERT_THAT(session, IsOk());
    Train(**session, 1);
  }
  // Its successor goes on where it was.
  auto session = Join();
  ASSERT_THAT(session, IsOk());
  Train(**session);
  EXPECT_THAT((*session)->end(), IsOk());
  EXPECT_THAT(numbers_, ::testing::Contains(4));
}

TEST_F(SessionTest, LeavingEndsACallOfAnotherThread) {
  auto session = Join();  // there is no chief, so no step
  ASSERT_THAT(session, IsOk());
  std::thread other([&] {
    absl::SleepFor(absl::Milliseconds(100));
    (*session)->Leave();
  });
  SessionStep step;
  const auto turn = (*session)->Next(absl::Minutes(10), step);
  other.join();
  ASSERT_THAT(turn, IsOk());
  EXPECT_EQ(*turn, Session::Turn::kEnded);
  EXPECT_THAT((*session)->end(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(SessionTest, VariablesThatCannotBeAreRefusedBeforeAnythingStarts) {
  const std::vector<float> two = {1, 2};
  EXPECT_THAT(Session::Join({}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      Session::Join({}, {{{.name = "w", .shape = {3}}, BytesOf(two)}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs 12")));
  EXPECT_THAT(
      Session::Join({}, {{{.name = "w"}, {}}, {{.name = "w"}, {}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"w\"")));
  EXPECT_THAT(
      Session::Join({}, {{{.name = "w", .shape = {int64_t{1} << 61, 2}}, {}}})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("fit into an address space")));
}

TEST_F(SessionTest, ATableIsNoBufferAndHasRows) {
  const std::string path = job_.directory().Join("tf_config");
  std::ofstream(path) << job_.TfConfigOf("worker", 0);
  const SessionVariable both = {
      {.name = "t", .shape = {2}, .row_cut = RowCut::kMod, .buffer = true}};
  const SessionVariable scalar = {{.name = "t", .row_cut = RowCut::kMod}};
  for (const SessionVariable& wrong : {both, scalar}) {
    EXPECT_THAT(Session::Join({.tf_config = path}, {wrong}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("cannot be a buffer")));
  }
}

}  // namespace
}  // namespace lockstep::worker
