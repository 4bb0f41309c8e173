#include "chief/recovery/shard_group.h"

#include <map>

#include "common/wire/incarnation_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/recovery/fake_shard_calls_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShardGroupTest : public ::testing::Test {
 protected:
  ShardGroupTest() {
    group_.Add(ps0_);
    group_.Add(ps1_);
  }

  std::vector<std::string> log_;
  FakeShardCalls ps0_{0, log_};
  FakeShardCalls ps1_{1, log_};
  ShardGroup group_{[](uint64_t above) { return above + 1; }};
};

TEST_F(ShardGroupTest, EpochIsThatOfTheFirstServerWhichIsAskedLast) {
  ps0_.last_epoch = 3;
  ps1_.last_epoch = 8;

  EXPECT_THAT(group_.TakeEpoch(), IsOkAndHolds(10));

  EXPECT_THAT(log_, ElementsAre("epoch 1", "epoch 0"));
  EXPECT_EQ(ps0_.epoch(), 10U);
  EXPECT_EQ(ps1_.epoch(), 10U);
  EXPECT_EQ(group_.epoch(), 10U);
}

TEST_F(ShardGroupTest, ServersThatTakeNoPartAreNotCalled) {
  group_.Use({0});

  ASSERT_OK(group_.TakeEpoch());
  const auto found = group_.Create({}, {}, ShardCalls::State::kKeep, {});
  ASSERT_OK(group_.Activate({}));

  EXPECT_THAT(log_, ElementsAre("epoch 0", "create 0", "activate 0"));
  ASSERT_OK(found);
  EXPECT_TRUE(found->reports[0].takes_part);
  EXPECT_FALSE(found->reports[1].takes_part);
  EXPECT_EQ(group_.Access()[1], nullptr);
}

TEST_F(ShardGroupTest, ServerThatKeepsNoEpochIsNotUsedIfItMayFail) {
  ps1_.epoch_taken = absl::DataLossError("the state file is damaged");
  EXPECT_THAT(group_.TakeEpoch(), StatusIs(absl::StatusCode::kDataLoss));
  ShardGroup::Failures failed;

  EXPECT_OK(group_.TakeEpoch(&failed));

  EXPECT_THAT(group_.used(), ElementsAre(0));
  EXPECT_THAT(failed, ElementsAre(::testing::Pair(
                          1, StatusIs(absl::StatusCode::kDataLoss,
                                      HasSubstr("ps 1: the state file")))));
}

// All servers are another chief's.
TEST_F(ShardGroupTest, NewerChiefIsNoFaultOfAServer) {
  ps1_.newest_chief = kLargestIncarnation;
  ShardGroup::Failures failed;

  EXPECT_THAT(group_.TakeEpoch(&failed), StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(group_.used(), ElementsAre(0, 1));
}

TEST_F(ShardGroupTest, ServerThatMayFailHasNoPartInTheResult) {
  ps1_.created = absl::DataLossError("the state file is damaged");
  std::map<int, absl::Status> failed;

  const auto found =
      group_.Create({}, {}, ShardCalls::State::kKeep, {}, &failed);

  ASSERT_OK(found);
  EXPECT_TRUE(found->reports[0].takes_part);
  EXPECT_FALSE(found->reports[1].takes_part);
  EXPECT_THAT(failed[1], StatusIs(absl::StatusCode::kDataLoss,
                                  HasSubstr("ps 1: the state file")));
  EXPECT_THAT(group_.Create({}, {}, ShardCalls::State::kKeep, {}),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(ShardGroupTest, NewerChiefAndTheFirstServerMayNotFail) {
  std::map<int, absl::Status> failed;
  ps1_.created = absl::AbortedError("newer");
  EXPECT_THAT(group_.Create({}, {}, ShardCalls::State::kKeep, {}, &failed),
              StatusIs(absl::StatusCode::kAborted));
  ps1_.created = absl::OkStatus();
  ps0_.created = absl::DataLossError("damaged");
  EXPECT_THAT(group_.Create({}, {}, ShardCalls::State::kKeep, {}, &failed),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(failed.empty());
}

TEST_F(ShardGroupTest, CheckpointIsOfTheServersThatTakePart) {
  group_.Use({0});
  ps0_.scalars = {0.5F};

  const auto snapshot = group_.BeginSnapshot(4, 1);

  ASSERT_OK(snapshot);
  EXPECT_THAT(snapshot->scalars, ElementsAre(0.5F));
  EXPECT_THAT(log_, ElementsAre("commit 0", "snapshot 0"));
}

TEST_F(ShardGroupTest, ChiefThatStartsIsNewerThanAnyThatServersKnow) {
  ps0_.newest_chief = 700;
  ps1_.newest_chief = 500;

  EXPECT_OK(group_.TakeEpoch());

  EXPECT_EQ(ps0_.incarnation(), 701U);
  EXPECT_EQ(ps1_.incarnation(), 701U);
}

TEST_F(ShardGroupTest, ChiefThatHasHadAnEpochGivesWay) {
  ASSERT_OK(group_.TakeEpoch());
  ps1_.newest_chief = 500;

  EXPECT_THAT(group_.TakeEpoch(), StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(ps1_.incarnation(), 0U);
}

TEST_F(ShardGroupTest, IncarnationThatIsTooLargeIsNoneToFollow) {
  ps1_.newest_chief = ~uint64_t{0};

  EXPECT_THAT(group_.TakeEpoch(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ShardGroupTest, FirstServerOpensLast) {
  ASSERT_OK(group_.Activate({.global_step = 7}));

  EXPECT_THAT(log_, ElementsAre("activate 1", "activate 0"));
}

TEST_F(ShardGroupTest, FirstServerStaysClosedWhereAnotherCannotOpen) {
  ps1_.activated = absl::UnavailableError("away");

  EXPECT_THAT(group_.Activate({}), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("ps 1: away")));

  EXPECT_THAT(log_, ElementsAre("activate 1"));
}

TEST_F(ShardGroupTest, FailureThatNamesItsServerIsNotNamedTwice) {
  for (const auto& [said, told] :
       {std::pair("ps 1 has no shard yet", "ps 1 has no shard yet"),
        std::pair("ps 10 has no shard yet", "ps 1: ps 10 has no shard yet")}) {
    ps1_.activated = absl::UnavailableError(said);

    EXPECT_EQ(group_.Activate({}), absl::UnavailableError(told));
  }
}

TEST_F(ShardGroupTest, OthersLearnOfADeathWhatTheFirstServerDecided) {
  ASSERT_OK(group_.ExpireWorker(1, 5, "killed"));

  EXPECT_THAT(log_, ElementsAre("expire 1 at 0 0", "expire 1 at 7 1"));
}

TEST_F(ShardGroupTest, ScalarsOfAVariableComeFromTheServersThatHaveIt) {
  ps0_.scalars = {0.5f, 7, 0};
  ps1_.scalars = {0.5f, 0, 7};

  const auto snapshot = group_.BeginSnapshot(4, 1);

  ASSERT_OK(snapshot);
  EXPECT_THAT(snapshot->scalars, ElementsAre(0.5f, 7, 7));
  ps1_.scalars = {};
  EXPECT_THAT(group_.BeginSnapshot(4, 1)->scalars, ElementsAre(0.5f, 7, 0));
  ps1_.scalars = {1};
  EXPECT_THAT(group_.BeginSnapshot(4, 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("ps 1 has 1 optimizer scalars")));
}

// A mirror that takes the state of another one creates its variables first.
TEST_F(ShardGroupTest, WaitForAMirrorThatCreatesItsVariablesCanBeEnded) {
  ps1_.works_for = 100;
  ShardCalls::Opening opening;
  opening.global_step = 4;
  int asked = 0;

  EXPECT_THAT(
      group_.CopyState(
          {}, {}, 0, {1},
          [&](int server, const ShardCalls::Working& working) -> absl::Status {
            EXPECT_EQ(server, 1);
            EXPECT_EQ(working.total_bytes, 100);
            return ++asked < 3 ? absl::OkStatus()
                               : absl::CancelledError("asked to stop");
          },
          /*on_transferred=*/{}, opening),
      StatusIs(absl::StatusCode::kCancelled));

  EXPECT_EQ(ps1_.works_for, 97);
}

TEST_F(ShardGroupTest, CopyOfAMirrorsStateCanBeEnded) {
  StateMap map;
  map.plan.mirrored = true;
  ShardCalls::Opening opening;
  opening.global_step = 4;

  EXPECT_THAT(
      group_.CopyState(
          {}, map, 0, {1},
          [](int, const ShardCalls::Working&) { return absl::OkStatus(); },
          [](int64_t, int64_t) {
            return absl::CancelledError("asked to stop");
          },
          opening),
      StatusIs(absl::StatusCode::kCancelled));

  // The donor does not keep a copy of its state for the rest of the job.
  EXPECT_THAT(
      log_, ElementsAre("activate 0", "snapshot 0", "discard 1", "release 0"));
}

TEST_F(ShardGroupTest, CopiesAreReleasedWhereAServerCannotCopy) {
  ps1_.copied = absl::ResourceExhaustedError("no memory");

  EXPECT_THAT(group_.BeginSnapshot(4, 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("ps 1: no memory")));

  EXPECT_THAT(log_, ElementsAre("commit 0", "snapshot 0", "commit 1",
                                "snapshot 1", "release 0"));
}

TEST_F(ShardGroupTest, SnapshotOfAnotherStepIsRefused) {
  EXPECT_OK(group_.BeginSnapshot(4, 1));
  EXPECT_THAT(group_.BeginSnapshot(5, 1),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("ps 0: the snapshot is of step 4, not 5")));
}

}  // namespace
}  // namespace lockstep::chief
