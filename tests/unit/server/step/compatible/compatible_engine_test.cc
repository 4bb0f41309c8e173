#include "server/step/compatible/compatible_engine.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <thread>
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
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr PushOutcome kAccepted = PushOutcome::kAccepted;
constexpr PushOutcome kDuplicate = PushOutcome::kDuplicate;
constexpr PushOutcome kStale = PushOutcome::kStale;

MATCHER_P(PreparedTake, ticket, "is a prepared take") {
  return arg.ticket == static_cast<uint64_t>(ticket) && arg.prepared &&
         arg.status.ok();
}
MATCHER_P(WithdrawnTake, ticket, "is a take that another one replaced") {
  return arg.ticket == static_cast<uint64_t>(ticket) && !arg.prepared &&
         arg.status.ok();
}

// Two gradients a step, two parts.
class CompatibleEngineTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 2;

  // Pushes and returns what became of each part.
  std::vector<PushOutcome> Add(const Pass& pass, float value,
                               int first_part = 0, int num_parts = kParts) {
    absl::StatusOr<ShardAnswers> answers = shard_.AddPush(
        ++ticket_, PushOf(pass, 0, first_part, num_parts, value));
    EXPECT_OK(answers);
    if (!answers.ok()) return {};
    takes_.insert(takes_.end(), answers->takes.begin(), answers->takes.end());
    EXPECT_THAT(answers->pushes, SizeIs(1));
    EXPECT_EQ(answers->pushes[0].ticket, ticket_);
    server_step_ = answers->pushes[0].server_step;
    return answers->pushes[0].outcomes;
  }
  void Take(uint64_t ticket, int64_t step) {
    absl::StatusOr<ShardAnswers> answers = shard_.Take(ticket, step);
    ASSERT_OK(answers);
    takes_.insert(takes_.end(), answers->takes.begin(), answers->takes.end());
  }
  static Pass PassOf(int worker, int64_t step, int64_t pass,
                     uint64_t incarnation = 1) {
    return {worker, incarnation, step, pass, 0};
  }

  FakePartUpdater updater_{kParts};
  CompatibleEngine shard_{2, std::vector<CompatiblePart>(kParts), updater_};
  uint64_t ticket_ = 100;
  int64_t server_step_ = -1;
  std::vector<TakeAnswer> takes_;
};

TEST_F(CompatibleEngineTest, PushIsAnsweredAtOnce) {
  EXPECT_THAT(Add(PassOf(0, 0, 1), 1), ElementsAre(kAccepted, kAccepted));

  EXPECT_EQ(server_step_, 0);
  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(CompatibleEngineTest, PartIsUpdatedWithTheMeanAsSoonAsItIsFull) {
  Take(1, 0);
  Add(PassOf(0, 0, 1), 1);
  EXPECT_THAT(updater_.updates(), IsEmpty());

  Add(PassOf(1, 0, 1), 4, /*first_part=*/1, /*num_parts=*/1);

  EXPECT_THAT(updater_.updates(),
              ElementsAre(FakePartUpdater::Update_{1, 0, {2.5f}}));
  EXPECT_THAT(takes_, IsEmpty());
  Add(PassOf(1, 0, 1), 2, 0, 1);
  EXPECT_THAT(takes_, ElementsAre(PreparedTake(1)));
}

TEST_F(CompatibleEngineTest, WorkersMayDifferFromPartToPart) {
  Take(1, 0);
  Add(PassOf(0, 0, 1), 10, 0, 1);
  Add(PassOf(1, 0, 1), 20, 0, 2);
  Add(PassOf(2, 0, 1), 40, 1, 1);

  EXPECT_THAT(updater_.updates(),
              ElementsAre(FakePartUpdater::Update_{0, 0, {15}},
                          FakePartUpdater::Update_{1, 0, {30}}));
}

TEST_F(CompatibleEngineTest, WorkerMayCountTwiceWithTwoPasses) {
  Take(1, 0);

  EXPECT_THAT(Add(PassOf(0, 0, 1), 1), ElementsAre(kAccepted, kAccepted));
  EXPECT_THAT(Add(PassOf(0, 0, 2), 3), ElementsAre(kAccepted, kAccepted));

  EXPECT_THAT(takes_, ElementsAre(PreparedTake(1)));
}

TEST_F(CompatibleEngineTest, RepeatedPushCountsOncePerPart) {
  Take(1, 0);
  Add(PassOf(0, 0, 1), 1, 0, 1);

  EXPECT_THAT(Add(PassOf(0, 0, 1), 1), ElementsAre(kDuplicate, kAccepted));
  EXPECT_THAT(Add(PassOf(0, 0, 1), 1), ElementsAre(kDuplicate, kDuplicate));

  EXPECT_THAT(updater_.updates(), IsEmpty());
}

TEST_F(CompatibleEngineTest, NewIncarnationCountsItsPassesAnew) {
  EXPECT_THAT(Add(PassOf(0, 0, 3, 1), 1), ElementsAre(kAccepted, kAccepted));

  EXPECT_THAT(Add(PassOf(0, 0, 1, 2), 1), ElementsAre(kAccepted, kAccepted));
  EXPECT_THAT(Add(PassOf(0, 0, 4, 1), 1), ElementsAre(kDuplicate, kDuplicate));
}

TEST_F(CompatibleEngineTest, StalePushIsToldSoHoweverOftenItIsRepeated) {
  Take(1, 0);
  Add(PassOf(0, 0, 1), 1);
  Add(PassOf(1, 0, 1), 1);
  ASSERT_OK(shard_.Commit(1, 0));

  EXPECT_THAT(Add(PassOf(2, 0, 1), 9), ElementsAre(kStale, kStale));
  EXPECT_EQ(server_step_, 1);
  EXPECT_THAT(Add(PassOf(2, 0, 1), 9), ElementsAre(kStale, kStale));

  // The same worker's next pass counts.
  EXPECT_THAT(Add(PassOf(2, 1, 2), 9), ElementsAre(kAccepted, kAccepted));
}

TEST_F(CompatibleEngineTest, GradientOfALaterStepIsFresh) {
  Take(1, 0);

  EXPECT_THAT(Add(PassOf(0, 7, 1), 1), ElementsAre(kAccepted, kAccepted));
  EXPECT_THAT(Add(PassOf(1, 0, 1), 1), ElementsAre(kAccepted, kAccepted));

  EXPECT_THAT(takes_, ElementsAre(PreparedTake(1)));
}

TEST_F(CompatibleEngineTest, TakeAveragesAllThatCameBeforeIt) {
  for (int worker : {0, 1, 2}) Add(PassOf(worker, 0, 1), worker);

  Take(1, 0);

  EXPECT_THAT(takes_, ElementsAre(PreparedTake(1)));
  EXPECT_THAT(updater_.updates(),
              ElementsAre(FakePartUpdater::Update_{0, 0, {1}},
                          FakePartUpdater::Update_{1, 0, {1}}));
}

TEST_F(CompatibleEngineTest, ActivateSetsTheStepOfEveryAccumulator) {
  shard_.Activate(5);

  EXPECT_EQ(shard_.step(), 5);
  EXPECT_THAT(Add(PassOf(0, 4, 1), 1), ElementsAre(kStale, kStale));
  EXPECT_THAT(Add(PassOf(0, 5, 2), 1), ElementsAre(kAccepted, kAccepted));
}

TEST_F(CompatibleEngineTest, LaterTakeReplacesTheEarlierAndAsksNotTwice) {
  Take(1, 0);
  Take(2, 0);
  EXPECT_THAT(takes_, ElementsAre(WithdrawnTake(1)));

  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1);
  EXPECT_THAT(takes_, ElementsAre(WithdrawnTake(1), PreparedTake(2)));
  Take(3, 0);

  EXPECT_THAT(takes_,
              ElementsAre(WithdrawnTake(1), PreparedTake(2), PreparedTake(3)));
  EXPECT_THAT(updater_.updates(), SizeIs(2));
}

TEST_F(CompatibleEngineTest, StepGoesOnWhileTheTakeIsWithdrawn) {
  Take(1, 0);
  shard_.CancelTake(1);
  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1);
  EXPECT_THAT(takes_, IsEmpty());

  Take(2, 0);

  EXPECT_THAT(takes_, ElementsAre(PreparedTake(2)));
}

TEST_F(CompatibleEngineTest,
       TakeThatIsRepeatedNeedsAsManyGradientsAsAreSetNow) {
  Take(1, 0);
  shard_.SetReplicas(3);
  Take(2, 0);
  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1);
  EXPECT_THAT(updater_.updates(), IsEmpty());
  takes_.clear();

  shard_.SetReplicas(2);
  Take(3, 0);

  EXPECT_THAT(takes_, ElementsAre(WithdrawnTake(2), PreparedTake(3)));
  EXPECT_THAT(updater_.updates(), SizeIs(2));
}

TEST_F(CompatibleEngineTest, CommitNeedsEveryPart) {
  Take(1, 0);
  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1, 0, 1);

  EXPECT_THAT(shard_.Commit(1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("1 of 2 parts updated")));
  EXPECT_THAT(shard_.CheckCommit(1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));

  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1, 1, 1);
  EXPECT_THAT(shard_.Commit(2, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(shard_.CheckCommit(1, 0));
  EXPECT_EQ(shard_.step(), 0);
  EXPECT_OK(shard_.Commit(1, 0));
  EXPECT_OK(shard_.Commit(1, 0));
  EXPECT_EQ(shard_.step(), 1);
  EXPECT_THAT(updater_.log(), ElementsAre("committed 1"));
}

TEST_F(CompatibleEngineTest, StepIsWholeUntilAnUpdateOverwritesIt) {
  const auto gone = StatusIs(absl::StatusCode::kDataLoss);
  Take(1, 0);
  Add(PassOf(0, 0, 1), 1);
  EXPECT_OK(shard_.CheckWhole(0));
  EXPECT_THAT(shard_.CheckWhole(1), gone);
  absl::Status during;
  updater_.on_update = [&](int, int64_t) {
    during = shard_.CheckWhole(0);
    return absl::OkStatus();
  };

  Add(PassOf(1, 0, 1), 1, 0, 1);

  EXPECT_THAT(during, gone);
  EXPECT_THAT(shard_.CheckWhole(0), gone);
  Add(PassOf(1, 0, 1), 1, 1, 1);
  EXPECT_THAT(shard_.CheckWhole(0), gone);
  ASSERT_OK(shard_.Commit(1, 0));
  EXPECT_OK(shard_.CheckWhole(1));
  EXPECT_THAT(shard_.CheckWhole(0), gone);
}

TEST_F(CompatibleEngineTest, TakeOfTheNextStepProvesTheCommit) {
  Take(1, 0);
  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1);

  Take(2, 1);

  EXPECT_EQ(shard_.step(), 1);
  for (int worker : {0, 1}) Add(PassOf(worker, 1, 2), 1);
  EXPECT_THAT(takes_, ElementsAre(PreparedTake(1), PreparedTake(2)));
  EXPECT_EQ(updater_.updates().back().step, 1);
}

TEST_F(CompatibleEngineTest, TakeOfAnotherStepIsRefused) {
  for (int64_t step : {-1, 1, 5}) {
    EXPECT_THAT(shard_.Take(1, step),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST_F(CompatibleEngineTest, ServerWithoutPartsIsPreparedAtOnce) {
  FakePartUpdater none(0);
  CompatibleEngine shard(2, {}, none);

  for (int64_t step : {0, 1, 2}) {
    EXPECT_THAT(shard.Take(step, step)->takes, ElementsAre(PreparedTake(step)));
  }

  EXPECT_EQ(shard.step(), 2);
  EXPECT_OK(shard.Commit(3, 0));
  EXPECT_EQ(shard.WaitsFor(), "");
}

TEST_F(CompatibleEngineTest, MalformedPushIsRefusedAndNothingCounts) {
  const auto push = [](int first_part, int num_parts) {
    return PushOf({0, 1, 0, 1, 0}, 0, first_part, num_parts, 1);
  };
  Push torn = push(0, 2);
  torn.gradients[1].slices[0].size = 3;

  for (const Push& bad : {push(0, 0), push(-1, 1), push(2, 1), push(0, 3), torn,
                          push(std::numeric_limits<int>::max(), 2)}) {
    EXPECT_THAT(shard_.AddPush(1, bad),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }

  EXPECT_EQ(shard_.WaitsFor(), "2 of 2 gradients of 2 parts");
}

TEST_F(CompatibleEngineTest, BFloat16IsRefusedAndDoesNotCount) {
  Push push = PushOf({0, 1, 0, 1, 0}, 0, 0, 2, 1);
  push.gradients[1] = BFloat16GradientOf(1);

  EXPECT_THAT(shard_.AddPush(1, std::move(push)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 1 is BFLOAT16")));

  EXPECT_EQ(shard_.WaitsFor(), "2 of 2 gradients of 2 parts");
}

TEST_F(CompatibleEngineTest, GradientMayComeInPiecesAtAnyAddress) {
  auto bytes = std::make_shared<std::vector<std::byte>>(9);
  const float values[2] = {3, 0};
  std::memcpy(bytes->data() + 1, values, 4);
  Push whole{PassOf(0, 0, 1), 0, 0, {{{{bytes->data() + 1, 4}}, bytes}}};
  Push pieces{
      PassOf(1, 0, 1),
      0,
      0,
      {{{{bytes->data() + 1, 3}, {bytes->data(), 0}, {bytes->data() + 4, 1}},
        bytes}}};
  Take(1, 0);

  EXPECT_OK(shard_.AddPush(1, std::move(whole)));
  EXPECT_OK(shard_.AddPush(2, std::move(pieces)));

  EXPECT_THAT(updater_.updates(),
              ElementsAre(FakePartUpdater::Update_{0, 0, {3}}));
}

TEST_F(CompatibleEngineTest, FailedUpdateReachesTheTakeAtHandAndLaterOnes) {
  updater_.on_update = [](int part, int64_t) {
    return part == 0 ? absl::InternalError("why") : absl::OkStatus();
  };
  const auto failed =
      AllOf(Field(&TakeAnswer::prepared, false),
            Field(&TakeAnswer::status, StatusIs(absl::StatusCode::kInternal)));
  Take(1, 0);
  for (int worker : {0, 1}) Add(PassOf(worker, 0, 1), 1);

  Take(2, 0);

  EXPECT_THAT(takes_, ElementsAre(failed, failed));
  EXPECT_THAT(shard_.Commit(1, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CompatibleEngineTest, ReportSaysWhatTheStepLacks) {
  Take(1, 0);
  EXPECT_EQ(shard_.WaitsFor(), "2 of 2 gradients of 2 parts");
  Add(PassOf(0, 0, 1), 1);
  EXPECT_EQ(shard_.WaitsFor(), "1 of 2 gradients of 2 parts");
  Add(PassOf(1, 0, 1), 1, 0, 1);
  EXPECT_EQ(shard_.WaitsFor(), "1 of 2 gradients of 1 part");
  Add(PassOf(1, 0, 1), 1, 1, 1);
  EXPECT_EQ(shard_.WaitsFor(), "");
}

TEST_F(CompatibleEngineTest, PassHasArrivedWhenAllItsPartsHaveAnswered) {
  std::vector<std::pair<int, int64_t>> arrived;  // worker and pass
  CompatibleEngine shard(
      2, std::vector<CompatiblePart>(kParts), updater_,
      [&](const Pass& pass) { arrived.emplace_back(pass.worker, pass.pass); });
  const auto push = [&](const Pass& pass, int part) {
    ASSERT_OK(shard.AddPush(1, PushOf(pass, 0, part, 1, 1)));
  };
  ASSERT_OK(shard.Take(1, 0));

  push(PassOf(0, 0, 1), 0);
  push(PassOf(0, 0, 1), 0);  // repeated
  push(PassOf(1, 0, 1), 1);
  EXPECT_THAT(arrived, IsEmpty());
  push(PassOf(0, 0, 1), 1);
  EXPECT_THAT(arrived, ElementsAre(Pair(0, 1)));

  // A new process counts its passes anew, and late parts of the old one do not
  // complete its pass.
  push(PassOf(1, 0, 1, 2), 1);
  push(PassOf(1, 0, 1), 0);
  EXPECT_THAT(arrived, SizeIs(1));
  // The parts are of step 1 by then: the gradients are stale, but that is an
  // answer.
  ASSERT_OK(shard.AddPush(1, PushOf(PassOf(2, 0, 1), 0, 0, kParts, 1)));
  EXPECT_THAT(arrived, ElementsAre(Pair(0, 1), Pair(2, 1)));
}

TEST_F(CompatibleEngineTest, FromManyThreadsEveryPushCountsOnce) {
  constexpr int kWorkers = 4;
  constexpr int kSteps = 50;
  std::atomic<int> accepted = 0;
  FakePartUpdater updater(kParts);
  CompatibleEngine shard(kWorkers, std::vector<CompatiblePart>(kParts),
                         updater);

  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_OK(shard.Take(1, step));
    std::vector<std::thread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        for (int repeat : {0, 1}) {
          auto answers = shard.AddPush(
              repeat, PushOf(PassOf(worker, step, step + 1), 0, 0, kParts, 1));
          for (PushOutcome outcome : answers->pushes[0].outcomes) {
            if (outcome == kAccepted) ++accepted;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_OK(shard.Commit(step + 1, 0));
  }

  EXPECT_EQ(accepted, kSteps * kWorkers * kParts);
  EXPECT_THAT(updater.updates(), SizeIs(kSteps * kParts));
  EXPECT_FALSE(updater.overlapped());
}

}  // namespace
}  // namespace lockstep::server
