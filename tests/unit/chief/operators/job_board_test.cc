#include "chief/operators/job_board.h"

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

TEST(JobBoardTest, AllWorkersHaveExamplesOfOneShape) {
  JobBoard board;
  EXPECT_OK(board.Describe(Model()));  // one that does not tell
  EXPECT_EQ(board.examples(), std::nullopt);

  EXPECT_OK(board.Describe(Model(), ExampleShape{.height = 8, .classes = 5}));

  EXPECT_THAT(
      board.Describe(Model(), ExampleShape{.width = 8, .classes = 5}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               ::testing::AllOf(::testing::HasSubstr("1x8x1, 5 classes"),
                                ::testing::HasSubstr("8x1x1, 5 classes"))));
  EXPECT_OK(board.Describe(Model()));
  EXPECT_EQ(board.examples()->height, 8);
}

TEST(JobBoardTest, FirstDescriptionIsTheModel) {
  JobBoard board;
  EXPECT_THAT(board.variables(), IsEmpty());

  EXPECT_OK(board.Describe(Model()));
  EXPECT_OK(board.Describe(Model()));

  EXPECT_EQ(board.variables(), Model());
}

TEST(JobBoardTest, ModelWithoutVariablesIsRefused) {
  JobBoard board;

  EXPECT_THAT(board.Describe({}), StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_OK(board.Describe(Model()));
}

TEST(JobBoardTest, CheckpointTroubleLastsUntilOneIsWritten) {
  JobBoard board;
  board.Checkpointed(10);

  board.CheckpointFailed("step 20: the volume is full");
  EXPECT_EQ(board.Get(kStart).checkpoint_trouble,
            "step 20: the volume is full");
  EXPECT_EQ(board.Get(kStart).last_checkpoint_step, 10);

  board.Checkpointed(30);
  EXPECT_EQ(board.Get(kStart).checkpoint_trouble, "");
}

TEST(JobBoardTest, NoticesHaveNumbersThatAscendFromOneChiefToTheNext) {
  JobBoard first;
  first.Notify("a", At(1));
  first.Notify("b", At(1));
  JobBoard second;
  second.Notify("c", At(2));

  const auto notices = first.Get(kStart).notices;
  ASSERT_THAT(notices, SizeIs(2));
  EXPECT_EQ(notices[1].text, "b");
  EXPECT_LT(notices[0].number, notices[1].number);
  EXPECT_LT(notices[1].number, second.Get(kStart).notices[0].number);
}

TEST(JobBoardTest, OnlyTheLastNoticesAreRemembered) {
  JobBoard board;
  for (int i = 0; i < 100; ++i) board.Notify(absl::StrCat(i), At(i));

  const auto notices = board.Get(kStart).notices;
  ASSERT_THAT(notices, SizeIs(JobBoard::kNotices));
  EXPECT_EQ(notices.back().text, "99");
}

TEST(JobBoardTest, LossesAreTheLatest) {
  JobBoard board;

  board.SetLosses({.recoveries = 2, .stood_still = absl::Seconds(3)});

  EXPECT_EQ(board.Get(kStart).losses.recoveries, 2);
  EXPECT_EQ(board.Get(kStart).losses.stood_still, absl::Seconds(3));
}

TEST(JobBoardTest, DeathStandsStillFromTheStepBeforeToTheStepAfter) {
  JobBoard board;
  board.StartTraining(0, kStart);
  board.Stepped(1, kStart + absl::Seconds(1));
  board.Died({.task = "ps 0", .at = kStart + absl::Seconds(3)});
  EXPECT_FALSE(board.Get(kStart).deaths.at(0).stood_still.has_value());

  board.Redone("step 2");
  board.Stepped(2, kStart + absl::Seconds(6));
  board.Redone("step 3");

  const JobBoard::Death death = board.Get(kStart).deaths.at(0);
  EXPECT_EQ(death.stood_still, absl::Seconds(5));
  EXPECT_EQ(death.redone, "step 2");
}

TEST(JobBoardTest, OldestDeathIsForgottenFirst) {
  JobBoard board;
  for (size_t i = 0; i <= JobBoard::kDeaths; ++i) {
    board.Died({.task = absl::StrCat("worker ", i), .at = kStart});
  }

  const std::vector<JobBoard::Death> deaths = board.Get(kStart).deaths;

  EXPECT_EQ(deaths.size(), JobBoard::kDeaths);
  EXPECT_EQ(deaths.front().task, "worker 1");
}

TEST(JobBoardTest, DifferenceIsNamedOnBothSides) {
  JobBoard board;
  ASSERT_OK(board.Describe(Model()));
  std::vector<VariableSpec> other = Model();
  other[1].shape = {4};

  EXPECT_THAT(board.Describe(other),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("variables[1]"), HasSubstr("b[4]"),
                             HasSubstr("b[3]"))));

  EXPECT_EQ(board.variables(), Model());
}

TEST(JobBoardTest, DifferenceBeyondNameAndShapeIsVisibleToo) {
  JobBoard board;
  ASSERT_OK(board.Describe(Model()));
  std::vector<VariableSpec> wider = Model();
  wider[0].dtype = DType::kFloat64;
  std::vector<VariableSpec> filled = Model();
  filled[0].initializer.a = 0.5;

  EXPECT_THAT(board.Describe(wider),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("w[2,3] float64"),
                             HasSubstr("w[2,3] float32"))));
  EXPECT_THAT(board.Describe(filled),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0.5")));
}

TEST(JobBoardTest, MoreOrFewerVariablesAreADifference) {
  JobBoard board;
  ASSERT_OK(board.Describe(Model()));
  std::vector<VariableSpec> more = Model();
  more.push_back({"c", {1}, DType::kFloat32, {}});
  const std::vector<VariableSpec> fewer = {Model()[0]};

  for (const auto& model : {more, fewer}) {
    EXPECT_THAT(board.Describe(model),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("variables here and 2 on the worker")));
  }
}

TEST(JobBoardTest, PlanIsThereOncePublished) {
  JobBoard board;
  EXPECT_FALSE(board.plan().has_value());

  board.PublishPlan({Model(), {{0, 0, 6, 1, 0}}});

  ASSERT_TRUE(board.plan().has_value());
  EXPECT_THAT(board.plan()->parts, SizeIs(1));
}

TEST(JobBoardTest, ViewFollowsTheJob) {
  JobBoard board;
  EXPECT_EQ(board.Get(kStart).state, JobState::kStarting);
  EXPECT_EQ(board.Get(kStart).last_checkpoint_step, -1);
  EXPECT_EQ(board.Get(kStart).training_time, absl::ZeroDuration());

  board.SetEpoch(4);
  board.StartTraining(10, kStart);
  board.Stepped(11, At(1));
  board.Checkpointed(10);
  board.SetWaits({{"step 12", "worker 1", At(1)}});

  const JobBoard::View view = board.Get(At(2));
  EXPECT_EQ(view.state, JobState::kTraining);
  EXPECT_EQ(view.epoch, 4u);
  EXPECT_EQ(view.global_step, 11);
  EXPECT_EQ(view.last_checkpoint_step, 10);
  EXPECT_EQ(view.training_time, absl::Seconds(2));
  ASSERT_THAT(view.waits, SizeIs(1));
  EXPECT_EQ(view.waits[0].waits_for, "worker 1");
}

TEST(JobBoardTest, RateIsThatOfTheLastSeconds) {
  JobBoard board;
  board.StartTraining(0, kStart);
  EXPECT_EQ(board.Get(At(1)).steps_per_second, 0);
  for (int i = 1; i <= 100; ++i) board.Stepped(i, At(i));  // one a second
  for (int i = 1; i <= 100; ++i) {
    board.Stepped(100 + i, At(100 + 0.1 * i));  // then ten a second
  }

  EXPECT_THAT(board.Get(At(110)).steps_per_second, DoubleNear(10, 0.1));
  // While no step comes the rate falls.
  EXPECT_LT(board.Get(At(120)).steps_per_second, 4);
}

TEST(JobBoardTest, StepsAtOneMomentGiveNoInfiniteRate) {
  JobBoard board;
  board.StartTraining(0, kStart);
  board.Stepped(1, kStart);

  EXPECT_EQ(board.Get(kStart).steps_per_second, 1000);
}

TEST(JobBoardTest, TrainingTimeAndRateEndWithTraining) {
  JobBoard board;
  board.StartTraining(0, kStart);
  board.Stepped(10, At(5));
  board.SetState(JobState::kFinishing, "", At(5));

  const JobBoard::View later = board.Get(At(100));

  EXPECT_EQ(later.training_time, absl::Seconds(5));
  EXPECT_THAT(later.steps_per_second, DoubleNear(2, 0.01));
  board.SetState(JobState::kDone, "", At(200));
  EXPECT_EQ(board.Get(At(300)).training_time, absl::Seconds(5));
}

TEST(JobBoardTest, TrainingThatIsDoneOnceMoreCounts) {
  JobBoard board;
  board.StartTraining(0, kStart);
  board.SetState(JobState::kFinishing, "", At(5));

  board.SetState(JobState::kTraining, "", At(7));
  EXPECT_EQ(board.Get(At(9)).state, JobState::kTraining);
  board.SetState(JobState::kFinishing, "", At(10));

  EXPECT_EQ(board.Get(At(100)).training_time, absl::Seconds(10));
}

TEST(JobBoardTest, FinalStatesStay) {
  for (JobState state :
       {JobState::kDone, JobState::kFailed, JobState::kStopped}) {
    JobBoard board;
    board.SetState(state, "why", kStart);

    board.SetState(JobState::kTraining, "", kStart);
    board.StartTraining(0, kStart);

    EXPECT_EQ(board.Get(kStart).state, state);
    EXPECT_EQ(board.Get(kStart).reason, "why");
  }
}

TEST(JobBoardTest, ScoreIsThatOfTheNewestCheckpoint) {
  JobBoard board;
  EXPECT_FALSE(board.Get(kStart).evaluation.has_value());

  board.Evaluated({20, 0.5, 0.8});
  board.Evaluated({10, 0.9, 0.1});
  EXPECT_EQ(board.Get(kStart).evaluation->accuracy, 0.8);

  board.Evaluated({20, 0.4, 0.9});
  EXPECT_EQ(board.Get(kStart).evaluation->accuracy, 0.9);
}

TEST(JobBoardTest, HistoryOfAnEarlierChiefCounts) {
  JobBoard board;
  JobBoard::History history;
  history.training_time = absl::Minutes(3);
  history.losses.steps_redone = 2;
  history.deaths = {{.task = "worker 1"}};
  EXPECT_TRUE(board.WantsHistory(At(0)));
  board.Died({.task = "chief", .at = At(0)});
  board.StartTraining(7, At(0));
  JobBoard::Losses losses;
  losses.steps_redone = 1;
  board.SetLosses(losses);

  board.Restore(history);
  board.Restore(history);  // a second server has it, too

  const JobBoard::History now = board.GetHistory(At(5));
  EXPECT_EQ(now.training_time, absl::Seconds(185));
  EXPECT_EQ(now.losses.steps_redone, 3);
  ASSERT_THAT(now.deaths, SizeIs(2));
  EXPECT_EQ(now.deaths[0].task, "worker 1");
  EXPECT_EQ(now.deaths[1].task, "chief");
  EXPECT_FALSE(board.WantsHistory(At(0)));
}

TEST(JobBoardTest, FirstChiefOfAJobStopsAskingForHistory) {
  JobBoard board;
  board.StartTraining(0, At(0));

  EXPECT_TRUE(board.WantsHistory(At(1)));
  EXPECT_FALSE(board.WantsHistory(At(4)));
}

}  // namespace
}  // namespace lockstep::chief
