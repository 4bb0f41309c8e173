#include "chief/recovery/recovery_plan.h"

#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::HasSubstr;
using Action = RecoveryPlan::Action;

constexpr int64_t kNone = -1;

ServerReport Open(int64_t committed, int64_t prepared = kNone) {
  return {
      .active = true, .committed_step = committed, .prepared_step = prepared};
}
ServerReport OpenIn(int64_t committed, int64_t attempt) {
  ServerReport report = Open(committed);
  report.attempt = attempt;
  return report;
}
ServerReport Killed(int64_t committed, int64_t prepared = kNone) {
  return {.committed_step = committed, .prepared_step = prepared};
}
const ServerReport kLost = {};
const ServerReport kWithoutParts = {.has_parts = false};

struct Case {
  std::string name;
  std::vector<ServerReport> reports;
  int64_t checkpoint = kNone;
  bool in_place = false;
  int64_t known = kNone;
  Action action = Action::kStart;
  int64_t step = 0;
  bool redo = false;
  int64_t repeated = 0;
  std::string reason = {};
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class RecoveryPlanTest : public ::testing::TestWithParam<Case> {};

TEST_P(RecoveryPlanTest, IsWhatTheReportsAskFor) {
  const Case& c = GetParam();

  const RecoveryPlan plan =
      MakeRecoveryPlan(c.reports, c.in_place, c.checkpoint, c.known);

  EXPECT_EQ(plan.action, c.action);
  EXPECT_EQ(plan.step, c.step);
  EXPECT_EQ(plan.redo, c.redo);
  EXPECT_EQ(plan.repeated_steps, c.repeated);
  EXPECT_THAT(plan.reason, HasSubstr(c.reason));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecoveryPlanTest,
    ::testing::Values(Case{.name = "FirstStart", .reports = {kLost, kLost}},
                      Case{.name = "StartFromACheckpoint",
                           .reports = {kLost, kLost},
                           .checkpoint = 40,
                           .step = 40},
                      Case{.name = "OnlyTheChiefWasAway",
                           .reports = {Open(7, 8), Open(7)},
                           .checkpoint = 5,
                           .action = Action::kResume,
                           .step = 7},
                      Case{.name = "RoundBeforeOpenedOnlyTheOther",
                           .reports = {OpenIn(7, 1), OpenIn(7, 4000001)},
                           .action = Action::kResume,
                           .step = 7,
                           .redo = true},
                      Case{.name = "AttemptWasNotToldToTheOther",
                           .reports = {OpenIn(7, 2), OpenIn(7, 1)},
                           .action = Action::kResume,
                           .step = 7},
                      Case{.name = "ChiefDiedBetweenTheCommits",
                           .reports = {Open(8), Open(7, 8)},
                           .action = Action::kResume,
                           .step = 8},
                      Case{.name = "KilledServerHasTheStep",
                           .reports = {Open(7), Killed(7)},
                           .action = Action::kResume,
                           .step = 7,
                           .redo = true},
                      Case{.name = "KilledFirstServerHasTheStep",
                           .reports = {Killed(7, 8), Open(7, 8)},
                           .action = Action::kResume,
                           .step = 7,
                           .redo = true},
                      Case{.name = "KilledServerCompletesTheCommit",
                           .reports = {Open(8), Killed(7, 8)},
                           .action = Action::kResume,
                           .step = 8,
                           .redo = true},
                      Case{.name = "AllKilled",
                           .reports = {Killed(8, 9), Killed(7, 8), Killed(8)},
                           .checkpoint = 8,
                           .action = Action::kResume,
                           .step = 8,
                           .redo = true},
                      Case{.name = "KilledAtStepZero",
                           .reports = {Killed(0), Killed(0, 1)},
                           .action = Action::kResume,
                           .redo = true},
                      Case{.name = "WithoutPartsNothingIsLost",
                           .reports = {Open(7), kWithoutParts},
                           .action = Action::kResume,
                           .step = 7,
                           .redo = true},
                      Case{.name = "LostServerTakesAllBack",
                           .reports = {Open(7, 8), kLost},
                           .checkpoint = 5,
                           .action = Action::kGoBack,
                           .step = 5,
                           .repeated = 2,
                           .reason = "ps 1 has lost its state"},
                      Case{.name = "LostFirstServerTakesAllBack",
                           .reports = {kLost, Open(7)},
                           .checkpoint = 5,
                           .action = Action::kGoBack,
                           .step = 5,
                           .repeated = 2,
                           .reason = "ps 0 has lost its state"},
                      Case{.name = "ChiefHasSeenTheStep",
                           .reports = {Open(7), Killed(7)},
                           .known = 7,
                           .action = Action::kResume,
                           .step = 7,
                           .redo = true},
                      Case{.name = "CommitThatTheChiefHasNotSeen",
                           .reports = {Killed(8), Open(7, 8)},
                           .known = 7,
                           .action = Action::kResume,
                           .step = 8,
                           .redo = true},
                      Case{.name = "AnotherChiefTookAllBack",
                           .reports = {Open(5), Open(5)},
                           .checkpoint = 5,
                           .known = 7,
                           .action = Action::kGoBack,
                           .step = 5,
                           .repeated = 2,
                           .reason = "back to step 5 from step 7"},
                      Case{.name = "WithoutACheckpointToTheStart",
                           .reports = {Open(7), kLost},
                           .action = Action::kGoBack,
                           .step = 0,
                           .repeated = 7,
                           .reason = "ps 1"},
                      Case{.name = "CrashDuringGoingBack",
                           .reports = {kLost, Open(5)},
                           .checkpoint = 5,
                           .action = Action::kGoBack,
                           .step = 5,
                           .reason = "ps 0"},
                      Case{.name = "StatesThatDoNotFit",
                           .reports = {Open(7), Killed(5, 6)},
                           .checkpoint = 4,
                           .action = Action::kGoBack,
                           .step = 4,
                           .repeated = 3,
                           .reason = "ps 1 is at step 5, not at 7"},
                      Case{.name = "FurtherThanTheFirst",
                           .reports = {Killed(6, 7), Killed(7)},
                           .checkpoint = 4,
                           .action = Action::kGoBack,
                           .step = 4,
                           .repeated = 3,
                           .reason = "ps 1 is at step 7, not at 6"},
                      Case{.name = "CheckpointOfALaterRun",
                           .reports = {Killed(7), Killed(7)},
                           .checkpoint = 9,
                           .action = Action::kGoBack,
                           .step = 9,
                           .reason = "newer"},
                      Case{.name = "InPlaceOpenServersGoOn",
                           .reports = {Open(8), Open(7, 8)},
                           .in_place = true,
                           .action = Action::kResume,
                           .step = 8},
                      Case{.name = "InPlaceAKilledOneTakesAllBack",
                           .reports = {Open(7), Killed(7)},
                           .checkpoint = 5,
                           .in_place = true,
                           .action = Action::kGoBack,
                           .step = 5,
                           .repeated = 2,
                           .reason = "in the midst of a step"}),
    [](const auto& test) { return test.param.name; });

TEST(FirstAttemptTest, IsNewerThanAnyOfAnEarlierEpoch) {
  EXPECT_GT(FirstAttempt(1), 1000);
  EXPECT_GT(FirstAttempt(4), FirstAttempt(3) + 100'000);
}

constexpr int64_t kTrainSteps = 20;

ServerReport Paused(ServerReport report) {
  report.settings.paused = true;
  return report;
}

// A job of mirrors.
// The same report of a state that was opened last in `epoch`.
ServerReport In(uint64_t epoch, ServerReport report) {
  report.opened_epoch = epoch;
  return report;
}

ServerReport NotAsked() {
  ServerReport report;
  report.takes_part = false;
  return report;
}

struct MirrorCase {
  std::string name;
  std::vector<ServerReport> reports;
  int64_t checkpoint = kNone;
  int64_t known = kNone;
  Action action = Action::kResume;
  int64_t step = 0;
  bool redo = true;
  std::vector<int> copies = {};
  int donor = 0;
  std::string reason = {};
};

void PrintTo(const MirrorCase& c, std::ostream* os) { *os << c.name; }

class MirrorPlanTest : public ::testing::TestWithParam<MirrorCase> {};

TEST_P(MirrorPlanTest, KeepsTheStepThatAnyMirrorHas) {
  const MirrorCase& c = GetParam();

  const RecoveryPlan plan =
      MakeMirrorPlan(c.reports, c.checkpoint, c.known, kTrainSteps);

  EXPECT_EQ(plan.action, c.action);
  EXPECT_EQ(plan.step, c.step);
  EXPECT_EQ(plan.redo, c.redo);
  EXPECT_EQ(plan.repeated_steps, 0);
  EXPECT_EQ(plan.copies, c.copies);
  if (!c.copies.empty()) {
    EXPECT_EQ(plan.donor, c.donor);
  }
  EXPECT_THAT(plan.reason, HasSubstr(c.reason));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MirrorPlanTest,
    ::testing::Values(
        MirrorCase{.name = "FirstStart",
                   .reports = {kLost, kLost},
                   .action = Action::kStart,
                   .redo = false},
        MirrorCase{.name = "AllLostWithACheckpoint",
                   .reports = {kLost, kLost},
                   .checkpoint = 40,
                   .action = Action::kStart,
                   .step = 40,
                   .redo = false},
        MirrorCase{.name = "OnlyTheChiefWasAway",
                   .reports = {Open(7, 8), Open(7)},
                   .step = 7,
                   .redo = false},
        MirrorCase{.name = "KilledMirrorHasTheStep",
                   .reports = {Open(7), Killed(7)},
                   .step = 7},
        MirrorCase{.name = "OneIsLost",
                   .reports = {Open(7), kLost, Open(7, 8)},
                   .checkpoint = 5,
                   .known = 7,
                   .step = 7,
                   .copies = {1},
                   .donor = 2,
                   .reason = "ps 1 has lost its state"},
        MirrorCase{.name = "FirstIsLost",
                   .reports = {kLost, Open(7), Open(7)},
                   .known = 7,
                   .step = 7,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "FirstIsLostAndMayHaveCommittedWhatAllHavePrepared",
                   .reports = {kLost, Open(7, 8), Killed(7, 8)},
                   .known = 7,
                   .step = 8,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "StepBeyondTheLastIsNeverCommitted",
                   .reports = {kLost, Open(20, 21)},
                   .known = 20,
                   .step = 20,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "NoStepIsCommittedWhileTheJobIsPaused",
                   .reports = {kLost, Paused(Open(7, 8))},
                   .known = 7,
                   .step = 7,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "FirstIsLostAndOneHasHeardOfTheCommit",
                   .reports = {kLost, Open(7, 8), Open(8)},
                   .known = 8,
                   .step = 8,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "FirstIsLostAndCannotHaveCommittedTheNext",
                   .reports = {kLost, Open(7, 8), Open(7)},
                   .known = 7,
                   .step = 7,
                   .copies = {0},
                   .donor = 1},
        MirrorCase{.name = "OneIsTooOldToGoOn",
                   .reports = {Open(7), Killed(5)},
                   .known = 7,
                   .step = 7,
                   .copies = {1},
                   .donor = 0,
                   .reason = "ps 1 is at step 5, not at 7"},
        MirrorCase{.name = "AllButOneAreLost",
                   .reports = {kLost, kLost, Killed(9)},
                   .known = 9,
                   .step = 9,
                   .copies = {0, 1},
                   .donor = 2},
        MirrorCase{.name = "OneTakesNoPart",
                   .reports = {Open(7), NotAsked(), Open(7)},
                   .known = 7,
                   .step = 7,
                   .redo = false},
        MirrorCase{.name = "FirstIsLostAndOneTakesNoPart",
                   .reports = {kLost, NotAsked(), Open(7)},
                   .known = 7,
                   .step = 7,
                   .copies = {0},
                   .donor = 2},
        // The others have made step 8 without its gradient.
        MirrorCase{.name = "OneHasPreparedAStepThatOthersMadeWithoutIt",
                   .reports = {In(5, Open(8)), In(3, Killed(7, 8))},
                   .known = 8,
                   .step = 8,
                   .copies = {1},
                   .donor = 0,
                   .reason = "ps 1 was away while the others went on"},
        MirrorCase{.name = "OneHasCommittedAStepOfAnotherHistory",
                   .reports = {In(5, Open(8)), In(3, Killed(8))},
                   .known = 8,
                   .step = 8,
                   .copies = {1},
                   .donor = 0},
        MirrorCase{.name = "FirstIsLostAndAnotherHasMissedAnOpening",
                   .reports = {kLost, In(3, Killed(9)), In(5, Open(8))},
                   .known = 8,
                   .step = 8,
                   .copies = {0, 1},
                   .donor = 2},
        MirrorCase{.name = "OneWasOpenedInARoundThatDidNotEnd",
                   .reports = {In(3, Open(8)), In(5, Open(8))},
                   .known = 8,
                   .step = 8,
                   .redo = false}),
    [](const auto& tested) { return tested.param.name; });

TEST(RecoveryPlanOfMirrorsTest, MirrorsThatAnotherChiefHasTakenBackGoBack) {
  const RecoveryPlan plan =
      MakeMirrorPlan({{kLost, Open(3)}}, 2, 7, kTrainSteps);

  EXPECT_EQ(plan.action, Action::kGoBack);
  EXPECT_EQ(plan.step, 2);
  EXPECT_THAT(plan.copies, ::testing::IsEmpty());
}

// The donor of a round that did not complete was opened in epoch 5.
TEST(RecoveryPlanOfMirrorsTest, RoundThatDidNotCompleteMakesNoMirrorLate) {
  const std::vector<ServerReport> reports = {kLost, In(5, Open(8)),
                                             In(3, Open(8))};

  const RecoveryPlan plan = MakeMirrorPlan(reports, kNone, 8, kTrainSteps, 3);

  EXPECT_EQ(plan.action, Action::kResume);
  EXPECT_EQ(plan.step, 8);
  EXPECT_THAT(plan.copies, ::testing::ElementsAre(0));
  // A chief that was restarted cannot tell.
  EXPECT_THAT(MakeMirrorPlan(reports, kNone, 8, kTrainSteps).copies,
              ::testing::ElementsAre(0, 2));
  EXPECT_THAT(MakeMirrorPlan(reports, kNone, 8, kTrainSteps, 5).copies,
              ::testing::ElementsAre(0, 2));
}

TEST(RecoveryPlanOfMirrorsTest,
     StepThatWasPreparedBeforeSuchARoundIsNotTakenForCommitted) {
  const RecoveryPlan plan =
      MakeMirrorPlan({{kLost, In(5, Open(8, 9)), In(3, Killed(8, 9))}}, kNone,
                     8, kTrainSteps, 3);

  EXPECT_EQ(plan.step, 8);
  EXPECT_THAT(plan.copies, ::testing::ElementsAre(0));
}

TEST(RecoveryPlanOfMirrorsTest, SaysThatNoMirrorThatIsThereHasTheState) {
  EXPECT_TRUE(MakeMirrorPlan({{kLost, NotAsked()}}, 2, 7, kTrainSteps)
                  .no_server_has_it);
  EXPECT_FALSE(
      MakeMirrorPlan({{kLost, Open(7)}}, 2, 7, kTrainSteps).no_server_has_it);
}

}  // namespace
}  // namespace lockstep::chief
