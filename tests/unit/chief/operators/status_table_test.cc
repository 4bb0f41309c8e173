#include "chief/operators/status_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

std::vector<VariableSpec> Model() {
  return {{"w", {2, 3}, DType::kFloat32, {}}, {"b", {3}, DType::kFloat32, {}}};
}

TEST(StatusTableTest, AllWorkersHaveExamplesOfOneShape) {
  StatusTable status_table;
  EXPECT_OK(status_table.Describe(Model()));  // one that does not tell
  EXPECT_EQ(status_table.examples(), std::nullopt);

  EXPECT_OK(
      status_table.Describe(Model(), ExampleShape{.height = 8, .classes = 5}));

  EXPECT_THAT(
      status_table.Describe(Model(), ExampleShape{.width = 8, .classes = 5}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               ::testing::AllOf(::testing::HasSubstr("1x8x1, 5 classes"),
                                ::testing::HasSubstr("8x1x1, 5 classes"))));
  EXPECT_OK(status_table.Describe(Model()));
  EXPECT_EQ(status_table.examples()->height, 8);
}

TEST(StatusTableTest, FirstDescriptionIsTheModel) {
  StatusTable status_table;
  EXPECT_THAT(status_table.variables(), IsEmpty());

  EXPECT_OK(status_table.Describe(Model()));
  EXPECT_OK(status_table.Describe(Model()));

  EXPECT_EQ(status_table.variables(), Model());
}

TEST(StatusTableTest, ModelWithoutVariablesIsRefused) {
  StatusTable status_table;

  EXPECT_THAT(status_table.Describe({}),
              StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_OK(status_table.Describe(Model()));
}

TEST(StatusTableTest, CheckpointTroubleLastsUntilOneIsWritten) {
  StatusTable status_table;
  status_table.Checkpointed(10, absl::UnixEpoch());

  status_table.CheckpointFailed("step 20: the volume is full");
  EXPECT_EQ(status_table.Get(kStart).checkpoint_trouble,
            "step 20: the volume is full");
  EXPECT_EQ(status_table.Get(kStart).last_checkpoint_step, 10);

  status_table.Checkpointed(30, absl::UnixEpoch());
  EXPECT_EQ(status_table.Get(kStart).checkpoint_trouble, "");
}

TEST(StatusTableTest, NoticesHaveNumbersThatAscendFromOneChiefToTheNext) {
  StatusTable first;
  first.Notify("a", At(1));
  first.Notify("b", At(1));
  StatusTable second;
  second.Notify("c", At(2));

  const auto notices = first.Get(kStart).notices;
  ASSERT_THAT(notices, SizeIs(2));
  EXPECT_EQ(notices[1].text, "b");
  EXPECT_LT(notices[0].number, notices[1].number);
  EXPECT_LT(notices[1].number, second.Get(kStart).notices[0].number);
}

TEST(StatusTableTest, OnlyTheLastNoticesAreRemembered) {
  StatusTable status_table;
  for (int i = 0; i < 100; ++i) status_table.Notify(absl::StrCat(i), At(i));

  const auto notices = status_table.Get(kStart).notices;
  ASSERT_THAT(notices, SizeIs(StatusTable::kNotices));
  EXPECT_EQ(notices.back().text, "99");
}

TEST(StatusTableTest, LossesAreTheLatest) {
  StatusTable status_table;

  status_table.SetLosses({.recoveries = 2, .stood_still = absl::Seconds(3)});

  EXPECT_EQ(status_table.Get(kStart).losses.recoveries, 2);
  EXPECT_EQ(status_table.Get(kStart).losses.stood_still, absl::Seconds(3));
}

TEST(StatusTableTest, DeathStandsStillFromTheStepBeforeToTheStepAfter) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(1, kStart + absl::Seconds(1));
  status_table.Died({.task = "ps 0", .at = kStart + absl::Seconds(3)});
  EXPECT_FALSE(status_table.Get(kStart).deaths.at(0).stood_still.has_value());

  status_table.Redone("step 2");
  status_table.Stepped(2, kStart + absl::Seconds(6));
  status_table.Redone("step 3");

  const StatusTable::Death death = status_table.Get(kStart).deaths.at(0);
  EXPECT_EQ(death.stood_still, absl::Seconds(5));
  EXPECT_EQ(death.redone, "step 2");
}

TEST(StatusTableTest, PauseIsNoStandstillOfADeath) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(1, At(1));
  status_table.Died({.task = "worker 0", .at = At(3)});
  status_table.SetSettings({.revision = 1, .paused = true}, At(4));
  status_table.Died({.task = "worker 1", .at = At(1000)});
  status_table.SetSettings({.revision = 2}, At(8000));
  status_table.Stepped(2, At(8002));

  const StatusTable::View view = status_table.Get(At(8002));
  ASSERT_THAT(view.deaths, SizeIs(2));
  EXPECT_EQ(view.deaths[0].stood_still, absl::Seconds(5));
  EXPECT_EQ(view.deaths[1].stood_still, absl::Seconds(2));
}

TEST(StatusTableTest, OldestDeathIsForgottenFirst) {
  StatusTable status_table;
  for (size_t i = 0; i <= StatusTable::kDeaths; ++i) {
    status_table.Died({.task = absl::StrCat("worker ", i), .at = kStart});
  }

  const std::vector<StatusTable::Death> deaths =
      status_table.Get(kStart).deaths;

  EXPECT_EQ(deaths.size(), StatusTable::kDeaths);
  EXPECT_EQ(deaths.front().task, "worker 1");
}

TEST(StatusTableTest, DifferenceIsNamedOnBothSides) {
  StatusTable status_table;
  ASSERT_OK(status_table.Describe(Model()));
  std::vector<VariableSpec> other = Model();
  other[1].shape = {4};

  EXPECT_THAT(
      status_table.Describe(other),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("variables[1]"), HasSubstr("\"b\" float32 [4]"),
                     HasSubstr("\"b\" float32 [3]"))));

  EXPECT_EQ(status_table.variables(), Model());
}

TEST(StatusTableTest, DifferenceBeyondNameAndShapeIsVisibleToo) {
  StatusTable status_table;
  ASSERT_OK(status_table.Describe(Model()));
  std::vector<VariableSpec> wider = Model();
  wider[0].dtype = DType::kFloat64;
  std::vector<VariableSpec> filled = Model();
  filled[0].initializer.a = 0.5;

  EXPECT_THAT(status_table.Describe(wider),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"w\" float64 [2,3]"),
                             HasSubstr("\"w\" float32 [2,3]"))));
  EXPECT_THAT(status_table.Describe(filled),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0.5")));
}

TEST(StatusTableTest, MoreOrFewerVariablesAreADifference) {
  StatusTable status_table;
  ASSERT_OK(status_table.Describe(Model()));
  std::vector<VariableSpec> more = Model();
  more.push_back({"c", {1}, DType::kFloat32, {}});
  const std::vector<VariableSpec> fewer = {Model()[0]};

  for (const auto& model : {more, fewer}) {
    EXPECT_THAT(status_table.Describe(model),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variables here and 2 on the worker")));
  }
}

TEST(StatusTableTest, PlanIsThereOncePublished) {
  StatusTable status_table;
  EXPECT_FALSE(status_table.plan().has_value());

  status_table.PublishPlan({Model(), {{0, 0, 6, 1, 0}}});

  ASSERT_TRUE(status_table.plan().has_value());
  EXPECT_THAT(status_table.plan()->parts, SizeIs(1));
}

TEST(StatusTableTest, ViewFollowsTheJob) {
  StatusTable status_table;
  EXPECT_EQ(status_table.Get(kStart).state, JobState::kStarting);
  EXPECT_EQ(status_table.Get(kStart).last_checkpoint_step, -1);
  EXPECT_EQ(status_table.Get(kStart).training_time, absl::ZeroDuration());

  status_table.SetEpoch(4);
  status_table.StartTraining(10, kStart);
  status_table.Stepped(11, At(1));
  status_table.Checkpointed(10, absl::UnixEpoch());
  status_table.SetWaits({{"step 12", "worker 1", At(1)}});

  const StatusTable::View view = status_table.Get(At(2));
  EXPECT_EQ(view.state, JobState::kTraining);
  EXPECT_EQ(view.epoch, 4u);
  EXPECT_EQ(view.global_step, 11);
  EXPECT_EQ(view.last_checkpoint_step, 10);
  EXPECT_EQ(view.training_time, absl::Seconds(2));
  ASSERT_THAT(view.waits, SizeIs(1));
  EXPECT_EQ(view.waits[0].waits_for, "worker 1");
}

TEST(StatusTableTest, RateIsThatOfTheLastSeconds) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  EXPECT_EQ(status_table.Get(At(1)).steps_per_second, 0);
  for (int i = 1; i <= 100; ++i)
    status_table.Stepped(i, At(i));  // one a second
  for (int i = 1; i <= 100; ++i) {
    status_table.Stepped(100 + i, At(100 + 0.1 * i));  // then ten a second
  }

  EXPECT_THAT(status_table.Get(At(110)).steps_per_second, DoubleNear(10, 0.1));
  // While no step comes the rate falls.
  EXPECT_LT(status_table.Get(At(120)).steps_per_second, 4);
}

TEST(StatusTableTest, AJobThatGoesBackHasNoNegativeRate) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(500, At(1));

  status_table.Stepped(0, At(2));
  EXPECT_EQ(status_table.Get(At(2)).steps_per_second, 0);
  status_table.Stepped(10, At(3));
  EXPECT_THAT(status_table.Get(At(3)).steps_per_second, DoubleNear(10, 0.1));
}

TEST(StatusTableTest, StepsAtOneMomentGiveNoInfiniteRate) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(1, kStart);

  EXPECT_EQ(status_table.Get(kStart).steps_per_second, 1000);
}

TEST(StatusTableTest, PausesAreNoTrainingTimeAndHaveNoRate) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(10, At(5));
  status_table.SetSettings({.revision = 1, .paused = true}, At(5));
  EXPECT_EQ(status_table.Get(At(25)).training_time, absl::Seconds(5));
  EXPECT_EQ(status_table.Get(At(25)).steps_per_second, 0);

  status_table.SetSettings({.revision = 2}, At(25));
  status_table.Stepped(14, At(27));

  EXPECT_EQ(status_table.Get(At(27)).training_time, absl::Seconds(7));
  EXPECT_THAT(status_table.Get(At(27)).steps_per_second, DoubleNear(2, 0.01));
  // A pause that began before training did, as after a resume.
  status_table.SetSettings({.revision = 3, .paused = true}, At(30));
  status_table.StartTraining(14, At(40));
  EXPECT_EQ(status_table.Get(At(50)).training_time, absl::ZeroDuration());
}

TEST(StatusTableTest, TrainingTimeAndRateEndWithTraining) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.Stepped(10, At(5));
  status_table.SetState(JobState::kFinishing, "", At(5));

  const StatusTable::View later = status_table.Get(At(100));

  EXPECT_EQ(later.training_time, absl::Seconds(5));
  EXPECT_THAT(later.steps_per_second, DoubleNear(2, 0.01));
  status_table.SetState(JobState::kDone, "", At(200));
  EXPECT_EQ(status_table.Get(At(300)).training_time, absl::Seconds(5));
}

TEST(StatusTableTest, TrainingThatIsDoneOnceMoreCounts) {
  StatusTable status_table;
  status_table.StartTraining(0, kStart);
  status_table.SetState(JobState::kFinishing, "", At(5));

  status_table.SetState(JobState::kTraining, "", At(7));
  EXPECT_EQ(status_table.Get(At(9)).state, JobState::kTraining);
  status_table.SetState(JobState::kFinishing, "", At(10));

  EXPECT_EQ(status_table.Get(At(100)).training_time, absl::Seconds(10));
}

TEST(StatusTableTest, FinalStatesStay) {
  for (JobState state :
       {JobState::kDone, JobState::kFailed, JobState::kStopped}) {
    StatusTable status_table;
    status_table.SetState(state, "why", kStart);

    status_table.SetState(JobState::kTraining, "", kStart);
    status_table.StartTraining(0, kStart);

    EXPECT_EQ(status_table.Get(kStart).state, state);
    EXPECT_EQ(status_table.Get(kStart).reason, "why");
  }
}

TEST(StatusTableTest, ScoreIsThatOfTheNewestCheckpoint) {
  StatusTable status_table;
  EXPECT_FALSE(status_table.Get(kStart).evaluation.has_value());

  EXPECT_OK(status_table.Evaluated({20, 0.5, 0.8}));
  EXPECT_OK(status_table.Evaluated({10, 0.9, 0.1}));
  EXPECT_EQ(status_table.Get(kStart).evaluation->accuracy, 0.8);

  EXPECT_OK(status_table.Evaluated({20, 0.4, 0.9}));
  EXPECT_EQ(status_table.Get(kStart).evaluation->accuracy, 0.9);
}

// A user's evaluator that counts by itself would hide all later scores.
TEST(StatusTableTest, AScoreOfAStepThatTheJobHasNotReachedIsRefused) {
  StatusTable status_table;
  status_table.StartTraining(10, At(0));
  EXPECT_OK(status_table.Evaluated({10, 0.5, 0.8}));

  EXPECT_THAT(status_table.Evaluated({11, 0.5, 0.9}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("global_step is 11"),
                             HasSubstr("has reached step 10"),
                             HasSubstr("the checkpoint that was scored"))));
  EXPECT_THAT(status_table.Evaluated({-1, 0.5, 0.9}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("global_step is -1")));
  EXPECT_EQ(status_table.scored_step(), 10);

  // The servers have lost the steps after a checkpoint.
  status_table.Stepped(20, At(1));
  status_table.Checkpointed(20, At(1));
  status_table.Stepped(15, At(2));
  EXPECT_OK(status_table.Evaluated({20, 0.5, 0.9}));
  EXPECT_EQ(status_table.scored_step(), 20);
}

// A damaged checkpoint may have been scored before.
TEST(StatusTableTest, AJobThatGoesBackHasNoScoreOfALostStep) {
  StatusTable status_table;
  status_table.StartTraining(30, At(0));
  status_table.Checkpointed(20, At(0));
  EXPECT_OK(status_table.Evaluated({20, 0.5, 0.8}));

  status_table.Checkpointed(10, At(1));
  status_table.GoBack(10);

  EXPECT_EQ(status_table.scored_step(), -1);
  EXPECT_EQ(status_table.Get(At(1)).global_step, 10);
  // From an evaluator that was not done with the lost checkpoint.
  EXPECT_OK(status_table.Evaluated({20, 0.5, 0.8}));
  EXPECT_EQ(status_table.scored_step(), -1);
  EXPECT_THAT(status_table.Evaluated({31, 0.5, 0.8}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has reached step 10")));
  EXPECT_OK(status_table.Evaluated({10, 0.5, 0.7}));
  EXPECT_EQ(status_table.scored_step(), 10);
  status_table.Stepped(20, At(2));
  EXPECT_OK(status_table.Evaluated({20, 0.4, 0.9}));
  EXPECT_EQ(status_table.Get(At(2)).evaluation->accuracy, 0.9);
}

TEST(StatusTableTest, AJobThatGoesBackKeepsTheScoresOfStepsItHas) {
  StatusTable status_table;
  status_table.StartTraining(30, At(0));
  EXPECT_OK(status_table.Evaluated({20, 0.5, 0.8}));
  status_table.GoBack(20);
  EXPECT_EQ(status_table.scored_step(), 20);

  // The evaluator sees earlier than the job that step 20 is lost.
  EXPECT_OK(status_table.Evaluated({10, 0.5, 0.7}));
  EXPECT_EQ(status_table.scored_step(), 20);
  status_table.GoBack(10);
  EXPECT_EQ(status_table.scored_step(), 10);
  EXPECT_EQ(status_table.Get(At(2)).evaluation->accuracy, 0.7);
}

TEST(StatusTableTest, AJobThatBeginsAgainHasNoCheckpoint) {
  StatusTable status_table;
  status_table.StartTraining(30, At(0));
  status_table.Checkpointed(20, At(0));
  status_table.GoBack(0);
  EXPECT_EQ(status_table.Get(At(1)).last_checkpoint_step, -1);
}

// A chief that is started again does not know the step before.
TEST(StatusTableTest, AScoreBeforeTrainingStartsStaysIfItsStepIsReached) {
  for (const int64_t step : {20, 21}) {
    StatusTable status_table;
    EXPECT_OK(status_table.Evaluated({step, 0.5, 0.8}));
    status_table.StartTraining(20, At(0));
    EXPECT_EQ(status_table.scored_step(), step == 20 ? 20 : -1);
  }
}

TEST(StatusTableTest, HistoryOfAnEarlierChiefCounts) {
  StatusTable status_table;
  StatusTable::History history;
  history.training_time = absl::Minutes(3);
  history.losses.steps_redone = 2;
  history.deaths = {{.task = "worker 1"}};
  EXPECT_TRUE(status_table.WantsHistory(At(0)));
  status_table.Died({.task = "chief", .at = At(0)});
  status_table.StartTraining(7, At(0));
  StatusTable::Losses losses;
  losses.steps_redone = 1;
  status_table.SetLosses(losses);

  status_table.Restore(history);
  status_table.Restore(history);  // a second server has it, too

  const StatusTable::History now = status_table.GetHistory(At(5));
  EXPECT_EQ(now.training_time, absl::Seconds(185));
  EXPECT_EQ(now.losses.steps_redone, 3);
  ASSERT_THAT(now.deaths, SizeIs(2));
  EXPECT_EQ(now.deaths[0].task, "worker 1");
  EXPECT_EQ(now.deaths[1].task, "chief");
  EXPECT_FALSE(status_table.WantsHistory(At(0)));
}

TEST(StatusTableTest, HistorySaysWhetherTrainingTimeGrows) {
  StatusTable status_table;
  EXPECT_FALSE(status_table.GetHistory(At(0)).training);
  status_table.StartTraining(0, At(0));
  EXPECT_TRUE(status_table.GetHistory(At(1)).training);
  status_table.SetSettings({.revision = 1, .paused = true}, At(2));
  EXPECT_FALSE(status_table.GetHistory(At(3)).training);
  status_table.SetSettings({.revision = 2, .paused = false}, At(4));
  EXPECT_TRUE(status_table.GetHistory(At(5)).training);
  status_table.SetState(JobState::kFinishing, "", At(6));
  EXPECT_FALSE(status_table.GetHistory(At(7)).training);
}

TEST(StatusTableTest, FirstChiefOfAJobStopsAskingForHistory) {
  StatusTable status_table;
  status_table.StartTraining(0, At(0));

  EXPECT_TRUE(status_table.WantsHistory(At(1)));
  EXPECT_FALSE(status_table.WantsHistory(At(4)));
}

}  // namespace
}  // namespace lockstep::chief
