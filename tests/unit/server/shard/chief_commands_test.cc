#include "server/shard/chief_commands.h"

#include <atomic>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"
#include "tests/unit/server/step/answer_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TokenFor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1000);
constexpr uint64_t kEpoch = 3;
const ChiefCommands::Chief kChief{"job", kEpoch};

// ps task 0 of a job in which both workers count.
class ChiefCommandsTest : public ShardFixture {
 protected:
  ChiefCommandsTest() {
    host_.SetJobId("job");
    EXPECT_OK(host_.FollowChief("job", kEpoch));
    EXPECT_OK(host_.Create(options_.job, options_.variables, options_.parts));
    EXPECT_OK(control_.Activate(kChief, {}));
  }

  Shard& shard() { return **host_.shard(); }
  ChiefCommands::Ready Push(int worker, uint64_t ticket) {
    const Pass pass{worker, 1, 0, 1, 0};
    auto answers =
        shard().engine().AddPush(ticket, {pass, 1, 0, Gradients(2.0F)});
    EXPECT_OK(answers);
    return control_.Settle(shard(), *std::move(answers));
  }
  // Both wait for a token, which makes them members, and again after it.
  void Join() {
    for (int worker : {0, 1}) {
      EXPECT_OK(shard().gate()->Wait(worker, {worker, 1, -1, 0, 0}, 0, kNow));
      EXPECT_OK(
          shard().gate()->Wait(10 + worker, {worker, 1, 0, 1, 0}, 1, kNow));
    }
  }

  ShardHost host_{
      {.task_index = 0, .incarnation = 1, .state_dir = temp_dir_.path()}};
  ChiefCommands control_{host_};
};

TEST_F(ChiefCommandsTest, CommitMovesGateAndValuesTogether) {
  Join();
  Push(0, 1);
  EXPECT_THAT(Push(1, 2).answers.pushes, SizeIs(2));

  const auto committed = control_.Commit(kChief, 1, 1);

  ASSERT_OK(committed);
  EXPECT_THAT(committed->members, ElementsAre(0, 1));
  EXPECT_EQ(shard().gate()->global_step(), 1);
  EXPECT_EQ(shard().engine().step(), 1);
  EXPECT_THAT(committed->ready.tokens,
              UnorderedElementsAre(TokenFor(10, 1), TokenFor(11, 1)));
}

// A chief that was about to end the job has closed the tokens and died.
TEST_F(ChiefCommandsTest, ChiefThatTakesOverReopensTheTokens) {
  EXPECT_THAT(shard().gate()->Finish(), IsEmpty());
  const ChiefCommands::Chief next{"job", kEpoch + 1};
  ASSERT_OK(host_.FollowChief("job", next.epoch));

  ASSERT_OK(control_.Activate(next, {}));

  EXPECT_THAT(shard().gate()->Wait(1, {0, 1, -1, 0, 0}, 0, kNow),
              IsOkAndHolds(ElementsAre(TokenFor(1, 0))));
}

// The old chief goes on with its orders while the new one takes its epoch.
TEST_F(ChiefCommandsTest, NoOrderTakesEffectOnceANewerChiefHasItsEpoch) {
  const TaskId worker{TaskType::kWorker, 1};
  uint64_t epoch = kEpoch;
  std::atomic<uint64_t> ordered = 0;  // the newest incarnation to be expired
  for (int round = 0; round < 300; ++round) {
    std::thread old_chief([&, old = ChiefCommands::Chief{"job", epoch}] {
      while (control_.ExpireWorker(old, worker.index, ++ordered, 0, 0).ok()) {
      }
    });
    const uint64_t begun = ordered;
    while (ordered < begun + 2) std::this_thread::yield();

    const auto newer = control_.TakeEpoch("job", epoch);

    const uint64_t last = ordered;
    const bool admitted = host_.Admit("job", worker, last).ok();
    old_chief.join();
    ASSERT_OK(newer);
    epoch = *newer;
    ASSERT_EQ(host_.Admit("job", worker, last).ok(), admitted) << round;
  }
}

TEST_F(ChiefCommandsTest, NothingIsCommittedBeforeAllPartsAreUpdated) {
  Join();
  Push(0, 1);

  EXPECT_THAT(control_.Commit(kChief, 1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_EQ(shard().gate()->global_step(), 0);
  EXPECT_EQ(shard().engine().step(), 0);
}

TEST_F(ChiefCommandsTest, StepOfAnotherSetIsNotCommittedButBeginsAnew) {
  Join();
  Push(0, 1);
  Push(1, 2);

  const auto redone = control_.Commit(kChief, 1, 1, {{0, 1}, {0, 2}});

  ASSERT_OK(redone);
  EXPECT_EQ(redone->redone_attempt, 2);
  EXPECT_EQ(redone->global_step, 0);
  EXPECT_EQ(shard().gate()->global_step(), 0);
  EXPECT_EQ(shard().engine().step(), 0);
  // Both workers are told to push again.
  EXPECT_THAT(redone->ready.tokens, SizeIs(2));
  EXPECT_THAT(control_.Commit(kChief, 1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ChiefCommandsTest, StepOfTheSameSetOnAllServersIsCommitted) {
  Join();
  Push(0, 1);
  Push(1, 2);

  for (int repeated = 0; repeated < 2; ++repeated) {
    const auto committed = control_.Commit(kChief, 1, 1, {{0, 1}, {0, 1}});
    ASSERT_OK(committed);
    EXPECT_EQ(committed->redone_attempt, 0);
    EXPECT_EQ(shard().engine().step(), 1);
  }
}

TEST_F(ChiefCommandsTest, GrantedStepIsCommittedByTheLastPush) {
  Join();
  ASSERT_OK(control_.Take(kChief, 5, {.step = 0, .commit_until = 1}));
  Push(0, 1);

  const ChiefCommands::Ready ready = Push(1, 2);

  EXPECT_EQ(ready.committed_step, 1);
  EXPECT_THAT(ready.tokens, SizeIs(2));
  EXPECT_THAT(ready.answers.takes, SizeIs(1));
  const auto late = control_.Take(kChief, 6, {.step = 0, .commit_until = 1});
  ASSERT_OK(late);
  EXPECT_EQ(late->committed_step, 1);
}

TEST_F(ChiefCommandsTest, StepOfALargerGrantBeforeIsToldAsCommitted) {
  Join();
  ASSERT_OK(control_.Take(kChief, 5, {.step = 0, .commit_until = 2}));
  Push(0, 1);
  ASSERT_EQ(Push(1, 2).committed_step, 1);

  for (int repeated = 0; repeated < 2; ++repeated) {
    const auto fewer = control_.Take(kChief, 6, {.step = 0, .commit_until = 0});
    ASSERT_OK(fewer);
    EXPECT_EQ(fewer->committed_step, 1);
    EXPECT_TRUE(fewer->answers.takes[0].status.ok());
  }
}

TEST_F(ChiefCommandsTest, StepThatIsPreparedIsCommittedWhenItIsGranted) {
  Join();
  Push(0, 1);
  ASSERT_EQ(Push(1, 2).committed_step, 0);

  const auto granted = control_.Take(kChief, 5, {.step = 0, .commit_until = 1});

  ASSERT_OK(granted);
  EXPECT_EQ(granted->committed_step, 1);
  EXPECT_THAT(granted->answers.takes, SizeIs(1));
  EXPECT_THAT(granted->tokens,
              UnorderedElementsAre(TokenFor(10, 1), TokenFor(11, 1)));
  EXPECT_EQ(shard().engine().step(), 1);
}

TEST_F(ChiefCommandsTest, GrantEndsWithTheNextEpoch) {
  Join();
  ASSERT_OK(control_.Take(kChief, 5, {.step = 0, .commit_until = 1}));
  ASSERT_OK(control_.TakeEpoch("job", 0));
  Push(0, 1);

  EXPECT_EQ(Push(1, 2).committed_step, 0);
  EXPECT_EQ(shard().engine().step(), 0);
}

TEST_F(ChiefCommandsTest, WithdrawnGrantCommitsNothing) {
  Join();
  ASSERT_OK(control_.Take(kChief, 5, {.step = 0, .commit_until = 1}));
  Push(0, 1);

  EXPECT_THAT(control_.WithdrawGrant(kChief), IsOkAndHolds(*host_.shard()));

  EXPECT_EQ(Push(1, 2).committed_step, 0);
  EXPECT_EQ(shard().engine().step(), 0);
  EXPECT_OK(control_.Commit(kChief, 1, 1));
}

// A copy of the step may begin at once: no commit is half done by then.
TEST_F(ChiefCommandsTest, GrantIsWithdrawnBetweenCommitsOnly) {
  Join();
  ASSERT_OK(control_.Take(kChief, 5, {.step = 0, .commit_until = 1}));
  Push(0, 1);
  std::thread pusher([this] { Push(1, 2); });

  const auto withdrawn = control_.WithdrawGrant(kChief);
  const int64_t step = shard().engine().step();
  const int64_t of_gate = shard().gate()->global_step();

  pusher.join();
  EXPECT_OK(withdrawn);
  EXPECT_EQ(of_gate, step);
  EXPECT_EQ(shard().engine().step(), step);
}

TEST_F(ChiefCommandsTest, OlderChiefIsObeyedInNothing) {
  ASSERT_OK(control_.TakeEpoch("job", 0));
  const auto fenced = StatusIs(absl::StatusCode::kAborted);

  EXPECT_THAT(control_.Activate(kChief, {}), fenced);
  EXPECT_THAT(control_.Take(kChief, 5, {.step = 0, .commit_until = 0}), fenced);
  EXPECT_THAT(control_.WithdrawGrant(kChief), fenced);
  EXPECT_THAT(control_.Commit(kChief, 1, 1), fenced);
  EXPECT_THAT(control_.ExpireWorker(kChief, 0, 1, 0, 0), fenced);
  EXPECT_THAT(control_.ReplaceMember(kChief, 0, 0, 1), fenced);
  EXPECT_THAT(control_.CloseTokens(kChief), fenced);
}

TEST_F(ChiefCommandsTest, WorkersThatWaitLearnThatTheTokensAreClosed) {
  Join();
  const auto answers = control_.CloseTokens(kChief);
  ASSERT_OK(answers);
  EXPECT_THAT(*answers, SizeIs(2));
}

// The old chief closes tokens while the new one opens the server: several
// threads, of which some wait for the gate when the epoch changes.
TEST_F(ChiefCommandsTest, TokensOfANewerChiefAreNotClosedByAnOlderOne) {
  constexpr int kThreads = 4;
  uint64_t epoch = kEpoch;
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> closed = 0;
    std::vector<std::thread> old_chief;
    for (int i = 0; i < kThreads; ++i) {
      old_chief.emplace_back([&, old = ChiefCommands::Chief{"job", epoch}] {
        while (control_.CloseTokens(old).ok()) ++closed;
      });
    }
    while (closed < kThreads) std::this_thread::yield();
    const auto newer = control_.TakeEpoch("job", epoch);
    ASSERT_OK(newer);
    epoch = *newer;
    ASSERT_OK(host_.FollowChief("job", epoch));
    ASSERT_OK(control_.Activate({"job", epoch}, {}));
    for (std::thread& thread : old_chief) thread.join();
    const auto token = shard().gate()->Wait(
        1, {0, static_cast<uint64_t>(round) + 1, -1, 0, 0}, 0, kNow);
    ASSERT_THAT(token, IsOkAndHolds(ElementsAre(TokenFor(1, 0)))) << round;
    ASSERT_OK(control_.ExpireWorker({"job", epoch}, 0,
                                    static_cast<uint64_t>(round) + 1, 0, 0));
  }
}

TEST_F(ChiefCommandsTest, DeathOfAMemberBeginsAnAttemptOfValuesToo) {
  Join();
  EXPECT_THAT(Push(0, 1).answers.pushes, IsEmpty());

  const auto expired = control_.ExpireWorker(kChief, 1, 1, 0, 0);

  ASSERT_OK(expired);
  EXPECT_TRUE(expired->held_announcement);
  EXPECT_EQ(expired->attempt, 2);
  ASSERT_THAT(expired->ready.answers.pushes, SizeIs(1));
  EXPECT_THAT(expired->ready.answers.pushes[0].outcomes,
              ::testing::Each(PushOutcome::kSuperseded));
  EXPECT_EQ(shard().engine().arrivals().attempt, 2);
  EXPECT_THAT(host_.Admit("job", {TaskType::kWorker, 1}, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ChiefCommandsTest, OpeningShutsOutWorkersOfWhichNoIncarnationIsKnown) {
  Opening opening;
  opening.expired = {{0, 4}};
  opening.workers = {{1, 0}};

  ASSERT_OK(host_.FollowChief("job", kEpoch + 1));
  ASSERT_OK(control_.Activate({"job", kEpoch + 1}, opening));

  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(host_.Admit("job", {TaskType::kWorker, 0}, 4), refused);
  EXPECT_OK(host_.Admit("job", {TaskType::kWorker, 0}, 5));
  EXPECT_THAT(host_.Admit("job", {TaskType::kWorker, 1}, 5), refused);
}

TEST_F(ChiefCommandsTest, AnAttemptThatNoneCanFollowIsRefused) {
  const ChiefCommands::Chief chief{"job", kEpoch};
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("attempt is"));

  Opening opening;
  opening.attempt = kLast;
  EXPECT_THAT(control_.Activate(chief, opening).status(), refused);
  ChiefCommands::TakeOrder order;
  order.attempt = kLast;
  EXPECT_THAT(control_.Take(chief, 1, order).status(), refused);
  EXPECT_THAT(control_.Commit(chief, 1, kLast, {}).status(), refused);
  EXPECT_THAT(control_.ExpireWorker(chief, 0, 4, 0, kLast, false).status(),
              refused);
  EXPECT_THAT(control_.ReplaceMember(chief, 0, 0, kLast).status(), refused);

  EXPECT_OK(host_.Admit("job", {TaskType::kWorker, 0}, 4));
}

TEST_F(ChiefCommandsTest, RefusedOpeningShutsOutNoWorker) {
  const ChiefCommands::Chief next{"job", kEpoch + 1};
  ASSERT_OK(host_.FollowChief("job", next.epoch));
  const Opening good{.expired = {{0, 4}}, .workers = {{1, 0}, {0, {}, true}}};
  Opening step = good;
  step.global_step = 5;
  Opening attempt = good;
  attempt.attempt = -1;
  Opening settings = good;
  settings.settings.replicas_to_aggregate = 3;  // of two workers

  const std::pair<Opening, const char*> wrong[] = {
      {step, "step 5"},
      {attempt, "attempt is -1"},
      {settings, "3 gradients of 2"}};
  for (const auto& [bad, reason] : wrong) {
    EXPECT_THAT(control_.Activate(next, bad).status().message(),
                HasSubstr(reason));
  }
  EXPECT_OK(host_.Admit("job", {TaskType::kWorker, 0}, 4));
  EXPECT_OK(host_.Admit("job", {TaskType::kWorker, 1}, 5));
  EXPECT_THAT(host_.Standings(), IsEmpty());
  // The refused calls were not the one of the epoch that may shut workers out.
  ASSERT_OK(control_.Activate(next, good));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(host_.Admit("job", {TaskType::kWorker, 0}, 4), refused);
  EXPECT_THAT(host_.Admit("job", {TaskType::kWorker, 1}, 5), refused);
}

TEST_F(ChiefCommandsTest, TakeOfAnotherStepIsAnsweredWithWhy) {
  const auto ready = control_.Take(kChief, 5, {.step = 4, .commit_until = 0});

  ASSERT_OK(ready);
  ASSERT_THAT(ready->answers.takes, SizeIs(1));
  EXPECT_THAT(ready->answers.takes[0].status,
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::server
