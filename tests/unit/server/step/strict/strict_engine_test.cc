#include "server/step/strict/strict_engine.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr PushOutcome kAccepted = PushOutcome::kAccepted;
constexpr PushOutcome kDuplicate = PushOutcome::kDuplicate;
constexpr PushOutcome kStale = PushOutcome::kStale;
constexpr PushOutcome kSuperseded = PushOutcome::kSuperseded;

MATCHER_P2(PushIs, ticket, outcomes, "is the answer to the push") {
  return arg.ticket == static_cast<uint64_t>(ticket) && arg.status.ok() &&
         arg.outcomes == outcomes;
}
MATCHER_P2(TakeIs, ticket, attempt, "is a prepared take") {
  return arg.ticket == static_cast<uint64_t>(ticket) && arg.prepared &&
         arg.attempt == attempt && arg.status.ok();
}
MATCHER_P(WithdrawnTake, ticket, "is a take that another one replaced") {
  return arg.ticket == static_cast<uint64_t>(ticket) && !arg.prepared &&
         arg.status.ok();
}

std::vector<PushOutcome> All(int num_parts, PushOutcome outcome) {
  return std::vector<PushOutcome>(num_parts, outcome);
}

// Which gradient it is: worker 3 of attempt 2 gives 302.
float ValueFor(int worker, int64_t attempt) {
  return static_cast<float>(100 * worker + attempt);
}

// Two gradients a step, three workers, two parts.
class StrictEngineTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 2;
  static inline const StrictEngine::Options kOptions = {
      .replicas_to_aggregate = 2, .total_num_replicas = 3};

  static Push AllParts(int worker, int64_t attempt = 1, int64_t step = 0) {
    return PushOf({worker, 1, step, step + 1, 0}, attempt, 0, kParts,
                  ValueFor(worker, attempt));
  }
  static Push OnePart(int worker, int part, int64_t attempt = 1) {
    return PushOf({worker, 1, 0, 1, 0}, attempt, part, 1,
                  ValueFor(worker, attempt));
  }
  // Pushes under the worker's number; the call must work.
  ShardAnswers Add(Push push, uint64_t ticket) {
    absl::StatusOr<ShardAnswers> answers =
        shard_.AddPush(ticket, std::move(push));
    EXPECT_OK(answers);
    return answers.ok() ? *std::move(answers) : ShardAnswers();
  }
  ShardAnswers Add(Push push) {
    const uint64_t ticket = push.pass.worker;
    return Add(std::move(push), ticket);
  }
  ShardAnswers Take(uint64_t ticket, int64_t step = 0) {
    absl::StatusOr<ShardAnswers> answers = shard_.Take(ticket, step);
    EXPECT_OK(answers);
    return answers.ok() ? *std::move(answers) : ShardAnswers();
  }

  FakePartUpdater updater_{kParts};
  StrictEngine shard_{kOptions, updater_};
};

TEST_F(StrictEngineTest, SumIsInOrderOfWorkerAndSlotWhateverTheArrival) {
  std::vector<std::pair<int, int>> order = {{0, 0}, {0, 1}, {1, 0}, {2, 0}};
  do {
    FakePartUpdater updater(1);
    StrictEngine shard({.replicas_to_aggregate = 4, .total_num_replicas = 3},
                       updater);
    for (auto [worker, slot] : order) {
      const Pass pass{worker, 1, 0, slot + 1, slot};
      ASSERT_OK(shard.AddPush(1, PushOf(pass, 1, 0, 1, 10 * worker + slot)));
    }

    ASSERT_THAT(updater.updates(), SizeIs(1));
    EXPECT_THAT(updater.updates()[0].gradients, ElementsAre(0, 1, 10, 20));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(StrictEngineTest, PartIsUpdatedWithItsLastGradientAndNotBefore) {
  EXPECT_THAT(Add(AllParts(2)).pushes, IsEmpty());
  EXPECT_THAT(updater_.updates(), IsEmpty());

  Add(OnePart(0, 1));

  EXPECT_THAT(updater_.updates(), ElementsAre(FakePartUpdater::Update_{
                                      1, 0, {ValueFor(0, 1), ValueFor(2, 1)}}));
}

TEST_F(StrictEngineTest, PushIsAnsweredWhenAllItsPartsAreDecided) {
  EXPECT_THAT(Add(AllParts(2)).pushes, IsEmpty());
  EXPECT_THAT(Add(OnePart(0, 0), 10).pushes,
              ElementsAre(PushIs(10, All(1, kAccepted))));

  EXPECT_THAT(
      Add(OnePart(0, 1), 11).pushes,
      ElementsAre(PushIs(11, All(1, kAccepted)), PushIs(2, All(2, kAccepted))));
}

TEST_F(StrictEngineTest, RepeatedPushCountsOnce) {
  Add(AllParts(2), 20);
  Add(AllParts(2), 21);
  EXPECT_THAT(updater_.updates(), IsEmpty());

  EXPECT_THAT(Add(AllParts(0), 1).pushes,
              UnorderedElementsAre(PushIs(20, All(2, kAccepted)),
                                   PushIs(21, All(2, kDuplicate)),
                                   PushIs(1, All(2, kAccepted))));

  EXPECT_THAT(Add(AllParts(0), 2).pushes,
              ElementsAre(PushIs(2, All(2, kDuplicate))));
  EXPECT_THAT(updater_.updates(), SizeIs(2));
}

TEST_F(StrictEngineTest, SharesOfAWorkerAreAnsweredAtOnceAndSummedOnce) {
  FakePartUpdater updater(1);
  StrictEngine shard({.replicas_to_aggregate = 3, .total_num_replicas = 2},
                     updater);
  const auto push = [](int worker, int slot) {
    return PushOf({worker, 1, 0, slot + 1, slot}, 1, 0, 1, 10 * worker + slot);
  };

  // With the answer held back, worker 0 could never begin its second share.
  EXPECT_THAT(shard.AddPush(1, push(0, 0))->pushes,
              ElementsAre(PushIs(1, All(1, kAccepted))));
  EXPECT_THAT(shard.AddPush(2, push(0, 0))->pushes,
              ElementsAre(PushIs(2, All(1, kDuplicate))));
  EXPECT_THAT(shard.AddPush(3, push(1, 0))->pushes,
              ElementsAre(PushIs(3, All(1, kAccepted))));
  EXPECT_THAT(updater.updates(), IsEmpty());
  EXPECT_THAT(shard.AddPush(4, push(0, 1))->pushes,
              ElementsAre(PushIs(4, All(1, kAccepted))));

  ASSERT_THAT(updater.updates(), SizeIs(1));
  EXPECT_THAT(updater.updates()[0].gradients, ElementsAre(0, 1, 10));
}

TEST_F(StrictEngineTest, StalePushLearnsTheStepAndChangesNothing) {
  shard_.Activate(5);

  EXPECT_THAT(Add(AllParts(0, 1, 4)).pushes,
              ElementsAre(AllOf(PushIs(0, All(2, kStale)),
                                Field(&PushAnswer::server_step, 5))));

  Add(AllParts(1, 1, 5));
  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(StrictEngineTest, PushForAStepToComeIsRefused) {
  EXPECT_THAT(shard_.AddPush(1, AllParts(0, 1, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("step 1 is not committed")));
}

TEST_F(StrictEngineTest, PushOfAnAttemptGivenUpIsSuperseded) {
  shard_.StartAttempt(0, 3);

  EXPECT_THAT(Add(AllParts(0, 2)).pushes,
              ElementsAre(PushIs(0, All(2, kSuperseded))));

  Add(AllParts(1, 3));
  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(StrictEngineTest, NewAttemptDropsWhatWasCollectedAndUpdated) {
  Add(OnePart(0, 0), 1);
  Add(OnePart(1, 0), 2);  // part 0 is updated
  Add(OnePart(0, 1), 3);  // part 1 lacks a gradient

  EXPECT_THAT(shard_.StartAttempt(0, 2).pushes,
              ElementsAre(PushIs(3, All(1, kSuperseded))));

  Add(AllParts(2, 2));
  EXPECT_THAT(updater_.updates(), SizeIs(1));
  Add(AllParts(1, 2));
  ASSERT_THAT(updater_.updates(), SizeIs(3));
  EXPECT_THAT(updater_.updates()[2].gradients,
              ElementsAre(ValueFor(1, 2), ValueFor(2, 2)));
}

TEST_F(StrictEngineTest,
       PushOfAnAttemptThatTheChiefHasNotBegunShutsOutNoOther) {
  Add(AllParts(0), 1);

  for (const int64_t attempt : {int64_t{2}, int64_t{1} << 60}) {
    EXPECT_THAT(shard_.AddPush(2, AllParts(1, attempt)),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("has not begun here")));
  }

  EXPECT_THAT(Add(AllParts(2), 3).pushes, SizeIs(2));
  EXPECT_THAT(Take(9).takes, ElementsAre(TakeIs(9, 1)));
}

TEST_F(StrictEngineTest, StartingAnAttemptAgainOrAnOlderOneChangesNothing) {
  shard_.StartAttempt(0, 2);
  Add(AllParts(0, 2));

  EXPECT_THAT(shard_.StartAttempt(0, 2).pushes, IsEmpty());
  EXPECT_THAT(shard_.StartAttempt(0, 1).pushes, IsEmpty());
  EXPECT_THAT(shard_.StartAttempt(7, 9).pushes, IsEmpty());

  EXPECT_THAT(Add(AllParts(1, 2)).pushes, SizeIs(2));
}

TEST_F(StrictEngineTest, TakeBeforeTheLastPartIsAnsweredByItsPush) {
  EXPECT_THAT(Take(9).takes, IsEmpty());
  Add(AllParts(0));

  EXPECT_THAT(Add(AllParts(1)).takes, ElementsAre(TakeIs(9, 1)));

  EXPECT_THAT(updater_.log(), ElementsAre("prepared 1 attempt 1"));
}

TEST_F(StrictEngineTest, TakeAfterTheLastPartIsAnsweredAtOnce) {
  Add(AllParts(0));
  EXPECT_THAT(Add(AllParts(1)).takes, IsEmpty());

  EXPECT_THAT(Take(9).takes, ElementsAre(TakeIs(9, 1)));
  EXPECT_THAT(Take(10).takes, ElementsAre(TakeIs(10, 1)));
}

TEST_F(StrictEngineTest, PreparedTakeSaysWhoseGradientsItCameOf) {
  Add(AllParts(0));
  EXPECT_THAT(Take(9).takes, IsEmpty());

  const ShardAnswers answers = Add(AllParts(2));

  ASSERT_THAT(answers.takes, SizeIs(1));
  EXPECT_THAT(answers.takes[0].contributors, ElementsAre(0, 2));
  shard_.StartAttempt(0, 2);
  Add(AllParts(1, 2));
  Add(AllParts(0, 2));
  EXPECT_THAT(Take(9).takes[0].contributors, ElementsAre(0, 1));
}

TEST_F(StrictEngineTest, LaterTakeReplacesTheEarlier) {
  Take(8);

  EXPECT_THAT(Take(9).takes, ElementsAre(WithdrawnTake(8)));

  Add(AllParts(0));
  EXPECT_THAT(Add(AllParts(1)).takes, ElementsAre(TakeIs(9, 1)));
}

TEST_F(StrictEngineTest, WithdrawnTakeIsNotAnswered) {
  Take(8);
  shard_.CancelTake(7);
  shard_.CancelTake(8);
  Add(AllParts(0));

  EXPECT_THAT(Add(AllParts(1)).takes, IsEmpty());
}

TEST_F(StrictEngineTest, TakeOfAnotherStepIsRefused) {
  shard_.Activate(5);

  for (int64_t step : {4, 6}) {
    EXPECT_THAT(shard_.Take(1, step),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("from a server at step 5")));
  }
}

TEST_F(StrictEngineTest, CommitMakesTheNextStepTheServersStep) {
  Add(AllParts(0));
  Add(AllParts(1));

  EXPECT_OK(shard_.Commit(1, 1));

  EXPECT_EQ(shard_.step(), 1);
  EXPECT_THAT(updater_.committed(),
              Each(ElementsAre(ValueFor(0, 1), ValueFor(1, 1))));
  EXPECT_OK(shard_.Commit(1, 1));
  EXPECT_THAT(updater_.log(),
              ElementsAre("prepared 1 attempt 1", "committed 1"));
}

TEST_F(StrictEngineTest, CommitOfAnUnpreparedStepIsRefused) {
  Add(AllParts(0));
  Add(OnePart(1, 0));
  EXPECT_THAT(shard_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("1 of 2 parts updated")));
  Add(OnePart(1, 1));

  EXPECT_THAT(shard_.Commit(1, 2),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(shard_.Commit(2, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  EXPECT_EQ(shard_.step(), 0);
  EXPECT_OK(shard_.Commit(1, 1));
}

TEST_F(StrictEngineTest, CommitCanBeAskedForWithoutMakingIt) {
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition);
  EXPECT_OK(shard_.CheckCommit(0, 1));
  EXPECT_THAT(shard_.CheckCommit(1, 1), refused);
  Add(AllParts(0));
  Add(AllParts(1));

  EXPECT_THAT(shard_.CheckCommit(1, 2), refused);
  EXPECT_THAT(shard_.CheckCommit(2, 1), refused);
  EXPECT_OK(shard_.CheckCommit(1, 1));
  EXPECT_EQ(shard_.step(), 0);
}

TEST_F(StrictEngineTest, NewAttemptTakesPreparednessBack) {
  Add(AllParts(0));
  Add(AllParts(1));

  shard_.StartAttempt(0, 2);

  EXPECT_THAT(updater_.log(), ElementsAre("prepared 1 attempt 1", "dropped"));
  EXPECT_THAT(shard_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Take(9).takes, IsEmpty());
  shard_.LearnCommitted(1);
  EXPECT_EQ(shard_.step(), 0);
}

TEST_F(StrictEngineTest, ChiefsWordCommitsThePreparedStepAlone) {
  shard_.LearnCommitted(1);
  EXPECT_EQ(shard_.step(), 0);
  Add(AllParts(0));
  Add(AllParts(1));
  shard_.LearnCommitted(2);
  EXPECT_EQ(shard_.step(), 0);

  shard_.LearnCommitted(1);

  EXPECT_EQ(shard_.step(), 1);
}

TEST_F(StrictEngineTest, TakeOfTheNextStepProvesTheCommit) {
  Add(AllParts(0));
  Add(AllParts(1));

  EXPECT_THAT(Take(9, 1).takes, IsEmpty());

  EXPECT_EQ(shard_.step(), 1);
}

TEST_F(StrictEngineTest, AttemptOfTheNextStepProvesTheCommit) {
  Add(AllParts(0));
  Add(AllParts(1));

  shard_.StartAttempt(1, 2);

  EXPECT_EQ(shard_.step(), 1);
  EXPECT_THAT(Add(AllParts(0, 1, 1)).pushes,
              ElementsAre(PushIs(0, All(2, kSuperseded))));
}

TEST_F(StrictEngineTest, ServerWithoutPartsIsAlwaysPrepared) {
  FakePartUpdater none(0);
  StrictEngine shard(kOptions, none);

  EXPECT_THAT(shard.Take(1, 0)->takes, ElementsAre(TakeIs(1, 1)));
  EXPECT_OK(shard.Commit(1, 1));

  // It hears of attempts from the chief alone, even before the next take.
  shard.StartAttempt(2, 3);
  EXPECT_THAT(shard.Take(2, 2)->takes, ElementsAre(TakeIs(2, 3)));
  EXPECT_EQ(shard.WaitsFor(), "");
}

TEST_F(StrictEngineTest, MalformedPushIsRefusedAndNothingCounts) {
  const auto push = [&](int first_part, int num_parts) {
    return PushOf({0, 1, 0, 1, 0}, 1, first_part, num_parts, 1);
  };
  Push torn = push(0, 2);
  torn.gradients[1].slices[0].size = 3;
  Push empty = push(0, 2);
  empty.gradients[0].slices.clear();

  for (const Push& bad :
       {push(0, 0), push(-1, 1), push(2, 1), push(0, 3), push(1, 2), torn,
        empty, push(std::numeric_limits<int>::max(), 2)}) {
    EXPECT_THAT(shard_.AddPush(1, bad),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }

  Add(AllParts(1));
  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(StrictEngineTest, FailedUpdateReachesEveryPushAndTheTake) {
  updater_.on_update = [](int, int64_t) { return absl::InternalError("why"); };
  const auto failed = StatusIs(absl::StatusCode::kInternal);
  Take(9);
  Add(AllParts(0), 1);

  const ShardAnswers answers = Add(OnePart(1, 0), 2);

  // The other part of push 1 will not be decided any more.
  EXPECT_THAT(answers.pushes,
              UnorderedElementsAre(AllOf(Field(&PushAnswer::ticket, 1),
                                         Field(&PushAnswer::status, failed)),
                                   AllOf(Field(&PushAnswer::ticket, 2),
                                         Field(&PushAnswer::status, failed))));
  EXPECT_THAT(answers.takes, ElementsAre(Field(&TakeAnswer::status, failed)));
  EXPECT_THAT(shard_.AddPush(3, OnePart(1, 1)), failed);
  EXPECT_THAT(Take(10).takes, ElementsAre(Field(&TakeAnswer::status, failed)));
  EXPECT_THAT(shard_.Commit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(StrictEngineTest, FailureToNoteThePreparedStepReachesTheTake) {
  updater_.on_mark_prepared = absl::UnavailableError("why");
  Add(AllParts(0));
  Add(AllParts(1));

  for (uint64_t ticket : {9, 10}) {
    const ShardAnswers answers = Take(ticket);
    ASSERT_THAT(answers.takes, SizeIs(1));
    EXPECT_FALSE(answers.takes[0].prepared);
    EXPECT_EQ(answers.takes[0].status, absl::UnavailableError("why"));
  }
}

TEST_F(StrictEngineTest, NewAttemptForgetsAFailure) {
  updater_.on_update = [failed = false](int, int64_t) mutable {
    return std::exchange(failed, true) ? absl::OkStatus()
                                       : absl::InternalError("why");
  };
  Add(AllParts(0));
  Add(AllParts(1));

  shard_.StartAttempt(0, 2);
  Add(AllParts(0, 2));
  Add(AllParts(1, 2));

  EXPECT_THAT(Take(9).takes, ElementsAre(TakeIs(9, 2)));
}

TEST_F(StrictEngineTest, ReportSaysWhatTheStepLacks) {
  EXPECT_EQ(shard_.WaitsFor(), "2 of 2 gradients of 2 parts");
  Add(AllParts(0));
  EXPECT_EQ(shard_.WaitsFor(), "1 of 2 gradients of 2 parts");
  Add(OnePart(1, 1));
  EXPECT_EQ(shard_.WaitsFor(), "1 of 2 gradients of 1 part");
  Add(OnePart(1, 0));
  EXPECT_EQ(shard_.WaitsFor(), "");
}

TEST_F(StrictEngineTest, AbsentGradientsAreGradientsThatTheUpdaterIsTold) {
  Push push = AllParts(2);
  for (PartGradient& gradient : push.gradients) {
    gradient.slices.clear();
    gradient.absent = true;
  }
  EXPECT_THAT(Add(push).pushes, IsEmpty());
  EXPECT_EQ(shard_.arrivals().parts.at(2), 2);

  EXPECT_THAT(Add(AllParts(0)).pushes, SizeIs(2));

  EXPECT_THAT(updater_.updates(),
              UnorderedElementsAre(
                  FakePartUpdater::Update_{0, 0, {ValueFor(0, 1)}, 1},
                  FakePartUpdater::Update_{1, 0, {ValueFor(0, 1)}, 1}));
}

}  // namespace
}  // namespace lockstep::server
