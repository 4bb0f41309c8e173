#include "server/shard/shard.h"

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/event_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"
#include "tests/unit/server/shard/read_snapshot_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1000);

MATCHER_P(OpensWithTokens, tokens, "is open, with tokens") {
  return arg.ok() && arg->tokens.size() == static_cast<size_t>(tokens);
}

class ShardTest : public ShardFixture {
 protected:
  std::unique_ptr<Shard> Create() {
    auto shard = Shard::Create(options_);
    EXPECT_OK(shard);
    return shard.ok() ? *std::move(shard) : nullptr;
  }
  std::unique_ptr<Shard> CreateActive() {
    auto shard = Create();
    EXPECT_OK(shard->Activate(0, {}));
    return shard;
  }
  // Gradients of both workers for all parts; the step is then prepared.
  static void PushBoth(Shard& shard, int64_t step, float one, float other) {
    for (int worker : {0, 1}) {
      Push push{{worker, 1, step, step + 1, 0}, 1, 0, {}};
      push.gradients = Gradients(worker == 0 ? one : other);
      ASSERT_OK(shard.engine().AddPush(1, std::move(push)));
    }
  }
  // Makes a whole step, each time 0.5 off every value.
  static void MakeStep(Shard& shard, int64_t step) {
    ASSERT_OK(shard.engine().Take(1, step));
    PushBoth(shard, step, 1, 1);
    ASSERT_OK(shard.engine().Commit(step + 1, 1));
  }
  // The float32 parts.
  static std::vector<float> PullFloats(Shard& shard, int64_t step = -1) {
    const auto values = shard.Pull(0, 2, step);
    EXPECT_OK(values);
    return Floats(*values);
  }
  // The floats of the first two parts.
  static std::vector<float> Floats(const Shard::Values& values) {
    std::vector<std::byte> bytes;
    for (int part = 0; part < 2; ++part) {
      const auto value = values.parts[part].bytes;
      bytes.insert(bytes.end(), value.begin(), value.end());
    }
    return FromBytes<float>(bytes);
  }
  static absl::StatusOr<int64_t> Pull(Shard& shard, int64_t step) {
    const auto values = shard.Pull(0, kParts, step);
    if (!values.ok()) return values.status();
    return values->step;
  }
};

TEST_F(ShardTest, OnlyTaskZeroHasTheGate) {
  EXPECT_NE(Create()->gate(), nullptr);

  options_.task_index = 1;
  EXPECT_EQ(Create()->gate(), nullptr);
}

TEST_F(ShardTest, OnlyWorkersSpeakAndOnlyOfTheirShares) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  const TaskId one{TaskType::kWorker, 1};
  auto shard = Create();

  EXPECT_OK(shard->CheckWorker(one, 0));
  EXPECT_THAT(shard->CheckWorker(one, 1), invalid);
  EXPECT_THAT(shard->CheckWorker(one, -1), invalid);
  EXPECT_THAT(shard->CheckWorker({TaskType::kWorker, 2}, 0), invalid);
  EXPECT_THAT(shard->CheckWorker({TaskType::kPs, 0}, 0), invalid);
}

TEST_F(ShardTest, WorkerThatAnElasticJobHasNotLetInRegistersAgain) {
  options_.job.elastic_workers = true;
  auto shard = Create();

  EXPECT_OK(shard->CheckWorker({TaskType::kWorker, 1}, 0));
  EXPECT_THAT(shard->CheckWorker({TaskType::kWorker, 2}, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("register again")));
}

TEST_F(ShardTest, SharesAreThoseOfTheWorkerInStrictModeOnly) {
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  options_.job.replicas_to_aggregate = 3;
  auto strict = Create();
  options_.job.mode = SyncMode::kCompatible;
  options_.task_index = 1;  // beside the other
  options_.job.initial_tokens = 3;
  auto compatible = Create();

  EXPECT_OK(strict->CheckWorker({TaskType::kWorker, 0}, 1));
  EXPECT_THAT(strict->CheckWorker({TaskType::kWorker, 0}, 2), invalid);
  EXPECT_THAT(strict->CheckWorker({TaskType::kWorker, 1}, 1), invalid);
  EXPECT_THAT(compatible->CheckWorker({TaskType::kWorker, 0}, 1), invalid);
}

TEST_F(ShardTest, NothingIsServedBeforeItIsOpened) {
  auto shard = Create();

  EXPECT_FALSE(shard->active());
  EXPECT_THAT(Pull(*shard, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("ask the chief")));
  EXPECT_THAT(shard->BeginSnapshot(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("have no values yet")));
  EXPECT_THAT(shard->Activate(0, {}), OpensWithTokens(0));
  EXPECT_TRUE(shard->active());
  EXPECT_THAT(Pull(*shard, 0), IsOkAndHolds(0));
}

TEST_F(ShardTest, OpeningItAnswersTheWaits) {
  auto shard = Create();
  ASSERT_OK(shard->gate()->Wait(7, {0, 1, -1, 0, 0}, 0, kNow));

  const auto answers = shard->Activate(12, {});

  ASSERT_THAT(answers, OpensWithTokens(1));
  EXPECT_EQ(answers->tokens[0].step, 12);
  EXPECT_EQ(shard->engine().step(), 12);
  EXPECT_THAT(shard->Activate(12, {}), OpensWithTokens(0));
}

TEST_F(ShardTest, OpeningItElsewhereIsRefused) {
  auto shard = Create();
  EXPECT_THAT(shard->Activate(-1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(shard->Activate(0, {1, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(shard->active());
  ASSERT_OK(shard->Activate(3, {}));

  EXPECT_THAT(shard->Activate(4, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("open at step 3")));

  EXPECT_EQ(shard->engine().step(), 3);
}

TEST_F(ShardTest, StrictStepGoesFromPushToPull) {
  auto shard = CreateActive();

  PushBoth(*shard, 0, 1, 3);
  EXPECT_THAT(PullFloats(*shard), Each(1));
  ASSERT_OK(shard->engine().Commit(1, 1));

  EXPECT_THAT(PullFloats(*shard), Each(0));
}

TEST_F(ShardTest, PullOfThePreparedStepWaitsForTheChiefWhereOthersDecide) {
  options_.task_index = 1;
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1, 3);

  EXPECT_THAT(Pull(*shard, 1), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("step 1 is prepared")));
  EXPECT_EQ(shard->engine().step(), 0);
  EXPECT_THAT(PullFloats(*shard, 0), Each(1));

  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(PullFloats(*shard, 1), Each(0));
  EXPECT_THAT(Pull(*shard, 0), IsOkAndHolds(1));
}

TEST_F(ShardTest, PullOfThePreparedStepCommitsNothingOnTaskZero) {
  auto shard = CreateActive();
  PushBoth(*shard, 0, 1, 3);

  EXPECT_THAT(Pull(*shard, 1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("step 1 is not committed")));

  EXPECT_EQ(shard->engine().step(), 0);
  EXPECT_THAT(PullFloats(*shard), Each(1));
}

TEST_F(ShardTest, PullOfAStepToComeIsRefused) {
  auto shard = CreateActive();

  EXPECT_THAT(Pull(*shard, 1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("step 1 is not committed")));
}

TEST_F(ShardTest, PullOfUnknownPartsIsRefused) {
  auto shard = CreateActive();
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  constexpr int kMax = std::numeric_limits<int>::max();

  for (auto [first, count] : std::vector<std::pair<int, int>>{
           {-1, 1}, {0, 0}, {0, -1}, {3, 1}, {2, 2}, {kMax, kMax}}) {
    EXPECT_THAT(shard->Pull(first, count, -1), invalid);
    EXPECT_THAT(shard->SizeOf(first, count), invalid);
  }
  EXPECT_THAT(shard->SizeOf(1, 2), IsOkAndHolds(2 * kPartSize));
}

TEST_F(ShardTest, PullNeverMixesSteps) {
  // Parts that updates wait for.
  const auto returned = std::make_shared<EventQueue<int>>();
  options_.returned_parts = returned;
  auto shard = CreateActive();
  std::atomic<bool> done = false;
  std::thread puller([&] {
    while (!done) {
      const auto values = shard->Pull(0, kParts, -1);
      const auto wanted = static_cast<float>(1 - 0.5 * values->step);
      EXPECT_THAT(Floats(*values), Each(wanted));
    }
  });

  for (int64_t step = 0; step < 200; ++step) {
    ASSERT_OK(shard->engine().Take(1, step));
    PushBoth(*shard, step, 1, 1);
    while (!shard->engine().CheckCommit(step + 1, 1).ok()) {
      const std::optional<int> part = returned->PopFor(absl::Minutes(1));
      ASSERT_TRUE(part.has_value()) << "the reader's part never came back";
      shard->engine().PartReturned(*part);
    }
    ASSERT_OK(shard->engine().Commit(step + 1, 1));
  }
  done = true;
  puller.join();
}

TEST_F(ShardTest, CompatibleStepIsVisiblePartByPart) {
  options_.job.mode = SyncMode::kCompatible;
  options_.job.initial_tokens = 0;
  auto shard = CreateActive();
  ASSERT_OK(shard->engine().Take(1, 0));

  for (int worker : {0, 1}) {
    Push push{{worker, 1, 0, 1, 0}, 0, 1, {Gradients(1)[1]}};
    ASSERT_OK(shard->engine().AddPush(1, std::move(push)));
  }

  EXPECT_THAT(PullFloats(*shard),
              ElementsAre(1, 1, 1, 1, 0.5f, 0.5f, 0.5f, 0.5f));
}

TEST_F(ShardTest, CompatibleTokensComeWithTheCommit) {
  options_.job.mode = SyncMode::kCompatible;
  options_.job.initial_tokens = 1;
  auto shard = Create();
  for (int worker : {0, 1}) {
    ASSERT_OK(shard->gate()->Wait(worker, {worker, 1, 0, 1, 0}, 0, kNow));
  }

  EXPECT_THAT(shard->Activate(0, {}), OpensWithTokens(1));
  MakeStep(*shard, 0);
  EXPECT_THAT(shard->gate()->Commit(1, 0), IsOkAndHolds(SizeIs(1)));
}

TEST_F(ShardTest, CompatibleTokenIsUsedOnceAllGradientsOfItsPassAreIn) {
  options_.job.mode = SyncMode::kCompatible;
  options_.job.initial_tokens = 1;
  const auto returns_token = [&](int num_parts) {
    options_.incarnation += 1;
    auto shard = CreateActive();
    EXPECT_THAT(shard->gate()->Wait(1, {0, 1, 0, 1, 0}, 0, kNow),
                IsOkAndHolds(SizeIs(1)));
    Push push{{0, 1, 0, 2, 0}, 0, 0, Gradients(1)};
    push.gradients.resize(num_parts);
    EXPECT_OK(shard->engine().AddPush(1, std::move(push)));
    const bool held = shard->gate()->Expire(0, 1).held_token;
    EXPECT_OK(shard->state().Remove());
    return held;
  };

  EXPECT_FALSE(returns_token(kParts));
  EXPECT_TRUE(returns_token(kParts - 1));
  // The last part is on another server, which may lack the gradient.
  options_.parts.pop_back();
  EXPECT_TRUE(returns_token(kParts - 1));
}

TEST_F(ShardTest, SharesOfAWorkerMakeAStepWhereReplicasAreFew) {
  options_.job.total_num_replicas = 1;
  auto shard = CreateActive();

  for (int slot : {0, 1}) {
    Push push{{0, 1, 0, slot + 1, slot}, 1, 0, Gradients(1)};
    EXPECT_THAT(shard->engine().AddPush(1, std::move(push))->pushes, SizeIs(1));
  }

  ASSERT_OK(shard->engine().Commit(1, 1));
  EXPECT_THAT(PullFloats(*shard), Each(0.5f));
}

absl::StatusOr<int64_t> Read(const Shard& shard, int first, int count,
                             int tensor, absl::Span<std::byte> out) {
  const auto range = shard.FindRange(first, count, 0, 0);
  if (!range.ok()) return range.status();
  return ReadSnapshot(shard, *range, tensor, out);
}

TEST_F(ShardTest, SnapshotIsTheCommittedStepWhileTheNextIsPrepared) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  auto shard = CreateActive();
  MakeStep(*shard, 0);
  PushBoth(*shard, 1, 100, 100);

  EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(1));
  ASSERT_OK(shard->engine().Commit(2, 1));

  std::vector<std::byte> bytes(2 * kPartSize);
  ASSERT_THAT(Read(*shard, 0, 2, 0, absl::MakeSpan(bytes)), IsOkAndHolds(1));
  EXPECT_THAT(FromBytes<float>(bytes), Each(0.5f));
  ASSERT_OK(Read(*shard, 0, 2, 1, absl::MakeSpan(bytes)));
  EXPECT_THAT(FromBytes<float>(bytes), Each(1.0f));  // the momentum
  absl::Span<std::byte> last = absl::MakeSpan(bytes).first(kPartSize);
  ASSERT_OK(Read(*shard, 2, 1, 0, last));
  EXPECT_THAT(FromBytes<double>(last), Each(1.5));
}

// In compatible mode one gradient of a part is a step of that part.
class CompatibleSnapshotTest : public ShardTest {
 protected:
  CompatibleSnapshotTest() {
    options_.job.mode = SyncMode::kCompatible;
    options_.job.replicas_to_aggregate = 1;
    options_.job.initial_tokens = 0;
  }
  // Updates one part of the step after `step`.
  static void UpdatePart(Shard& shard, int64_t step, int part) {
    Push push{{0, 1, step, step + 1, 0}, 0, part, {Gradients(1)[part]}};
    ASSERT_OK(shard.engine().AddPush(1, std::move(push)));
  }
  static void UpdateAll(Shard& shard, int64_t step) {
    ASSERT_OK(shard.engine().Take(1, step));
    for (int part = 0; part < kParts; ++part) UpdatePart(shard, step, part);
  }
};

TEST_F(CompatibleSnapshotTest, StepThatIsPartlyOverwrittenIsNotCopied) {
  const auto gone =
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("values of step 0"));
  auto shard = CreateActive();
  ASSERT_OK(shard->engine().Take(1, 0));
  UpdatePart(*shard, 0, 0);

  EXPECT_THAT(shard->BeginSnapshot(), gone);
  UpdatePart(*shard, 0, 1);
  UpdatePart(*shard, 0, 2);
  EXPECT_THAT(shard->BeginSnapshot(), gone);

  ASSERT_OK(shard->engine().Commit(1, 0));
  EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(1));
}

TEST_F(CompatibleSnapshotTest, StepThatWaitsForGradientsIsCopied) {
  auto shard = CreateActive();
  UpdateAll(*shard, 0);
  ASSERT_OK(shard->engine().Commit(1, 0));
  ASSERT_OK(shard->engine().Take(1, 1));

  EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(1));
}

// A chief that takes over asks for the step that the one before has copied.
TEST_F(CompatibleSnapshotTest, CopyStaysThatOfItsStepWhileTheNextIsMade) {
  auto shard = CreateActive();
  UpdateAll(*shard, 0);
  ASSERT_OK(shard->engine().Commit(1, 0));
  ASSERT_OK(shard->BeginSnapshot());
  UpdateAll(*shard, 1);

  EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(1));

  std::vector<std::byte> bytes(2 * kPartSize);
  const Shard::ByteRange both{0, 2, 0, 2 * kPartSize};
  ASSERT_OK(ReadSnapshot(*shard, both, 0, absl::MakeSpan(bytes)));
  EXPECT_THAT(FromBytes<float>(bytes), Each(0.5f));
}

// A host need not have room for two copies.
TEST_F(CompatibleSnapshotTest, CopyOfAnotherStepIsFreedBeforeTheNextIsMade) {
  auto shard = CreateActive();
  ASSERT_OK(shard->BeginSnapshot());
  const std::weak_ptr<const Snapshot> first = *shard->snapshot();
  UpdateAll(*shard, 0);
  ASSERT_OK(shard->engine().Commit(1, 0));
  ASSERT_OK(shard->engine().Take(1, 1));
  UpdatePart(*shard, 1, 0);

  EXPECT_THAT(shard->BeginSnapshot(), StatusIs(absl::StatusCode::kDataLoss));

  EXPECT_TRUE(first.expired());
}

TEST_F(ShardTest, SnapshotHoldsTheOptimizersScalars) {
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdam;
  auto shard = CreateActive();

  ASSERT_OK(shard->BeginSnapshot());

  EXPECT_THAT((*shard->snapshot())->scalars(), ElementsAre(0.9f, 0.999f));
}

TEST_F(ShardTest, SnapshotThatIsNotThereCannotBeRead) {
  auto shard = CreateActive();
  std::vector<std::byte> bytes(kPartSize);
  const auto read = [&](int first, int count, int tensor) {
    return Read(*shard, first, count, tensor, absl::MakeSpan(bytes));
  };
  EXPECT_THAT(read(0, 1, 0), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(shard->BeginSnapshot());
  EXPECT_OK(read(0, 1, 0));

  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(read(0, 1, 1), invalid);
  EXPECT_THAT(read(0, 1, -1), invalid);
  EXPECT_THAT(read(3, 1, 0), invalid);
  EXPECT_THAT(read(0, 2, 0), invalid);

  shard->EndSnapshot();
  EXPECT_THAT(read(0, 1, 0), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ShardTest, ServerWithoutPartsKeepsUp) {
  for (SyncMode mode : {SyncMode::kStrict, SyncMode::kCompatible}) {
    options_.job.mode = mode;
    options_.parts.clear();
    options_.task_index = 1;
    auto shard = CreateActive();

    EXPECT_TRUE(shard->engine().Take(1, 0)->takes.at(0).prepared);
    EXPECT_TRUE(shard->engine().Take(2, 1)->takes.at(0).prepared);

    EXPECT_EQ(shard->engine().step(), 1);
    EXPECT_THAT(shard->BeginSnapshot(), IsOkAndHolds(1));
  }
}

TEST_F(ShardTest, StateThatCannotBeMadeIsAnError) {
  options_.parts[0].count = 100;

  EXPECT_THAT(Shard::Create(options_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::server
