// Rounds of mirrors of which some take no part.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/recovery/recovery_round.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/recovery/fake_shard_calls_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const absl::Status kDamaged = absl::DataLossError("the state file is damaged");

class RecoveryRoundMirrorsTest : public ::testing::Test,
                                 protected RecoverySource {
 protected:
  RecoveryRoundMirrorsTest() {
    group_.Add(ps0_);
    group_.Add(ps1_);
    plan_.mirrored = true;
    job_.strategy.kind = StrategyKind::kMultiWorkerMirrored;
    job_.elastic_workers = true;
  }

  absl::StatusOr<int64_t> LatestStep() const override { return checkpoint_; }
  absl::StatusOr<std::optional<Restored>> Restore(const StateMap&) override {
    log_.push_back("restore");
    return std::nullopt;
  }
  std::vector<int> Servers() const override { return needed_; }
  void OnStateElsewhere() override { log_.push_back("elsewhere"); }
  void OnLeftOut(int server, const absl::Status& why) override {
    left_out_.push_back(absl::StrCat(server, ": ", why.message()));
  }
  void OnEpoch(uint64_t) override {}
  absl::Status OnStartFrom(const RecoveryPlan&, bool) override {
    return absl::OkStatus();
  }

  // Mirror 1 has `step`, as the chief of `epoch` has opened it; mirror 0 has
  // lost its state.
  void OnlyTheSecondHas(int64_t step, uint64_t epoch) {
    ps1_.report = {.active = true, .committed_step = step};
    ps1_.report.opened_epoch = epoch;
  }
  // A later round of a chief that has seen step 4 committed, as others that
  // were opened in epoch 3 are away.
  absl::StatusOr<RecoveryRound::Outcome> RunWithoutOthers() {
    return round_.Run(plan_, {4, {0, 1}, /*others_have_state=*/true, 3});
  }

  testing::ManualClock clock_;
  JobConfig job_;
  Plan plan_;
  std::vector<int> needed_ = {0, 1};
  int64_t checkpoint_ = -1;
  std::vector<std::string> log_;
  std::vector<std::string> left_out_;
  FakeShardCalls ps0_{0, log_};
  FakeShardCalls ps1_{1, log_};
  ShardGroup group_;
  MembershipTable members_{{}, absl::Seconds(2)};
  RecoveryRound round_{job_, group_, members_, *this, clock_};
};

TEST_F(RecoveryRoundMirrorsTest, ServersThatTakeNoPartAreNotCalled) {
  ps0_.report = {.active = true, .committed_step = 4};

  const auto outcome = round_.Run(plan_, {4, {0}});

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->servers, (std::vector<int>{0}));
  EXPECT_THAT(log_, ElementsAre("epoch 0", "create 0", "activate 0"));
}

TEST_F(RecoveryRoundMirrorsTest,
       FirstRoundGoesOnWithTheServersThatTheJobNeeds) {
  ps0_.report = {.active = true, .committed_step = 4};
  needed_ = {0};

  const auto outcome = round_.Run(plan_, {std::nullopt, {0, 1}});

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->servers, (std::vector<int>{0}));
  EXPECT_THAT(log_, Not(Contains("activate 1")));
}

TEST_F(RecoveryRoundMirrorsTest, FirstRoundFailsWithoutAServerThatTheJobNeeds) {
  ps0_.report = {.active = true, .committed_step = 4};

  const auto outcome = round_.Run(plan_, {std::nullopt, {0}});

  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("ps 1 takes part")));
  EXPECT_THAT(log_, Not(Contains("activate 0")));
}

TEST_F(RecoveryRoundMirrorsTest,
       JobDoesNotGoBackWhileAnAbsentMirrorMayHaveTheState) {
  checkpoint_ = 2;

  const auto outcome = round_.Run(plan_, {4, {0}, /*others_have_state=*/true});

  EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(log_, Contains("elsewhere"));
  EXPECT_THAT(log_, Not(Contains("restore")));
}

TEST_F(RecoveryRoundMirrorsTest, StateOfTheLastOpeningIsEnough) {
  OnlyTheSecondHas(4, /*epoch=*/3);

  const auto outcome = RunWithoutOthers();

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->plan.donor, 1);
  EXPECT_THAT(log_, Not(Contains("elsewhere")));
}

// One that is away may have committed another step.
TEST_F(RecoveryRoundMirrorsTest, StateOfAnEarlierOpeningIsNotEnough) {
  for (const int64_t step : {2, 4}) {
    log_.clear();
    OnlyTheSecondHas(step, /*epoch=*/2);

    EXPECT_THAT(RunWithoutOthers(), StatusIs(absl::StatusCode::kUnavailable))
        << step;
    EXPECT_THAT(log_, Contains("elsewhere"));
    EXPECT_THAT(log_, Not(Contains("restore")));
  }
}

TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsIsLeftOutIfItIsNotNeeded) {
  ps0_.report = {.active = true, .committed_step = 4};
  ps1_.created = kDamaged;
  needed_ = {0};

  const auto outcome = round_.Run(plan_, {std::nullopt, {0, 1}});

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->servers, (std::vector<int>{0}));
  EXPECT_THAT(left_out_,
              ElementsAre(HasSubstr("1: ps 1: the state file is damaged")));
}

TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsIsLeftOutBeforeTheNextRound) {
  ps0_.report = {.active = true, .committed_step = 4};
  ps1_.created = kDamaged;
  for (const std::optional<int64_t> step : {std::optional<int64_t>(), {4}}) {
    left_out_.clear();

    EXPECT_THAT(round_.Run(plan_, {step, {0, 1}}),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("damaged")));
    EXPECT_THAT(left_out_, ElementsAre(HasSubstr("1: ps 1")));
    EXPECT_THAT(log_, Not(Contains("activate 0")));
  }
}

TEST_F(RecoveryRoundMirrorsTest, MirrorThatKeepsNoEpochIsLeftOut) {
  ps0_.report = {.active = true, .committed_step = 4};
  ps1_.epoch_taken = kDamaged;

  EXPECT_THAT(round_.Run(plan_, {4, {0, 1}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("damaged")));
  EXPECT_THAT(left_out_, ElementsAre(HasSubstr("1: ps 1")));
  EXPECT_THAT(log_, Not(Contains("create 1")));

  // The job does not need it.
  needed_ = {0};
  EXPECT_OK(round_.Run(plan_, {std::nullopt, {0, 1}}));
  EXPECT_THAT(log_, Not(Contains("create 1")));
}

TEST_F(RecoveryRoundMirrorsTest, MirrorThatCannotTakeACopyIsLeftOut) {
  ps0_.report = {.active = true, .committed_step = 4};
  ps1_.discarded = kDamaged;

  EXPECT_THAT(round_.Run(plan_, {4, {0, 1}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("damaged")));

  EXPECT_THAT(left_out_, ElementsAre(HasSubstr("1: ps 1")));
  EXPECT_THAT(log_, Contains("discard 1"));
}

TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsWithTheFinalPlanIsLeftOut) {
  ps0_.report = {.active = true, .committed_step = 4};
  FakeShardCalls ps2{2, log_};
  group_.Add(ps2);
  ps1_.fails_from_call = 2;
  needed_ = {0, 1};

  EXPECT_THAT(round_.Run(plan_, {std::nullopt, {0, 1, 2}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no disk")));

  EXPECT_THAT(left_out_, ElementsAre(HasSubstr("1: ps 1")));
}

// Without elastic workers the job cannot go on without any of its mirrors.
TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsEndsTheRoundOfAFixedJob) {
  ps0_.report = {.active = true, .committed_step = 4};
  ps1_.created = kDamaged;
  job_.elastic_workers = false;
  for (const std::optional<int64_t> step : {std::optional<int64_t>(), {4}}) {
    EXPECT_THAT(round_.Run(plan_, {step, {0, 1}}),
                StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(left_out_, IsEmpty());
}

// Mirror 0 has lost its state in the same round.
TEST_F(RecoveryRoundMirrorsTest,
       MirrorThatFailsIsNotNeededIfAThirdHasTheState) {
  FakeShardCalls ps2{2, log_};
  group_.Add(ps2);
  ps1_.created = kDamaged;
  ps2.report = {.active = true, .committed_step = 4};
  ps2.report.opened_epoch = 3;
  needed_ = {0, 1, 2};

  EXPECT_THAT(round_.Run(plan_, {4, {0, 1, 2}, /*others_have_state=*/false, 3}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("damaged")));
  EXPECT_THAT(left_out_, ElementsAre(HasSubstr("1: ps 1")));
  EXPECT_THAT(log_, Not(Contains("activate 0")));

  const auto outcome =
      round_.Run(plan_, {4, {0, 2}, /*others_have_state=*/true, 3});
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->plan.donor, 2);
  EXPECT_EQ(outcome->plan.copies, (std::vector<int>{0}));
}

// The third has missed the last opening, or this chief does not know of it.
TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsMayBeTheOnlyOneWithTheState) {
  FakeShardCalls ps2{2, log_};
  group_.Add(ps2);
  ps1_.created = kDamaged;
  ps2.report = {.active = true, .committed_step = 4};
  ps2.report.opened_epoch = 3;
  needed_ = {0, 1, 2};

  EXPECT_THAT(round_.Run(plan_, {4, {0, 1, 2}, /*others_have_state=*/false, 4}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(round_.Run(plan_, {std::nullopt, {0, 1, 2}}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(left_out_, IsEmpty());
}

TEST_F(RecoveryRoundMirrorsTest, MirrorWithoutWhichNoJobGoesOnIsNotLeftOut) {
  OnlyTheSecondHas(4, /*epoch=*/3);
  ps0_.discarded = kDamaged;

  EXPECT_THAT(round_.Run(plan_, {4, {0, 1}, /*others_have_state=*/false, 3}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(left_out_, IsEmpty());
}

// Mirror 0, which knows for sure which mirrors are needed, has lost its state.
TEST_F(RecoveryRoundMirrorsTest, MirrorThatFailsMayBeTheOneThatKnows) {
  ps1_.created = kDamaged;
  needed_ = {0};

  EXPECT_THAT(round_.Run(plan_, {std::nullopt, {0, 1}}),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(left_out_, IsEmpty());
}

}  // namespace
}  // namespace lockstep::chief
