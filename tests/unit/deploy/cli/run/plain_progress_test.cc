#include "deploy/cli/run/plain_progress.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr absl::Duration kInterval = absl::Seconds(5);

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

JobStatus Training(int64_t step) {
  return {.state = JobState::kTraining,
          .step = step,
          .train_steps = 1500,
          .loss = 0.5,
          .examples_per_second = 1000,
          .members = {{.task = "worker 0"}, {.task = "worker 1"}}};
}

TEST(PlainProgressTest, TheFirstStepsAreAnnouncedOnce) {
  PlainProgress progress(kInterval);

  EXPECT_THAT(progress.Next(Training(0), std::nullopt, At(0)),
              Optional(Eq("training starts: step 0 of 1500, 2 workers")));
  EXPECT_EQ(progress.Next(Training(3), std::nullopt, At(0.2)), std::nullopt);
}

TEST(PlainProgressTest, StepsBeforeTheFirstLookAreNoStart) {
  PlainProgress progress(kInterval);

  EXPECT_THAT(progress.Next(Training(14), std::nullopt, At(0)),
              Optional(Eq("training has started: step 14 of 1500, 2 workers")));
}

TEST(PlainProgressTest, ALineComesEveryInterval) {
  PlainProgress progress(kInterval);
  progress.Next(Training(0), std::nullopt, At(0));

  EXPECT_EQ(progress.Next(Training(90), absl::Seconds(70), At(4.9)),
            std::nullopt);
  EXPECT_THAT(progress.Next(Training(100), absl::Seconds(70), At(5)),
              Optional(Eq("step 100 of 1500, loss 0.5000, 1000 examples/s, "
                          "ETA 1:10")));
  EXPECT_EQ(progress.Next(Training(110), absl::Seconds(70), At(5.2)),
            std::nullopt);
}

TEST(PlainProgressTest, JobThatIsPausedDoesNotStartToTrain) {
  PlainProgress progress(kInterval);
  JobStatus status = Training(148);
  status.settings.paused = true;

  EXPECT_THAT(progress.Next(status, std::nullopt, At(0)),
              Optional(Eq("ready to train, but paused: step 148 of 1500, "
                          "2 workers")));
}

TEST(PlainProgressTest, LossThatNoWorkerHasReportedIsNotShown) {
  PlainProgress progress(kInterval);
  progress.Next(Training(0), std::nullopt, At(0));
  JobStatus status = Training(100);
  status.loss = 0;

  EXPECT_THAT(progress.Next(status, std::nullopt, At(5)),
              Optional(Eq("step 100 of 1500, 1000 examples/s")));
}

TEST(PlainProgressTest, ARateThatNoWorkerHasReportedIsNotShown) {
  PlainProgress progress(kInterval);
  progress.Next(Training(0), std::nullopt, At(0));
  JobStatus status = Training(100);
  status.examples_per_second = 0;

  EXPECT_THAT(progress.Next(status, std::nullopt, At(5)),
              Optional(Eq("step 100 of 1500, loss 0.5000")));
}

TEST(PlainProgressTest, ANewScoreIsALineOfItsOwn) {
  PlainProgress progress(kInterval);
  progress.Next(Training(0), std::nullopt, At(0));
  JobStatus scored = Training(40);
  scored.evaluation = Evaluation{.step = 30, .accuracy = 0.75};

  EXPECT_THAT(progress.Next(scored, std::nullopt, At(1)),
              Optional(HasSubstr("test accuracy 0.7500 at step 30")));
  EXPECT_EQ(progress.Next(scored, std::nullopt, At(2)), std::nullopt);
}

TEST(PlainProgressTest, AStartThatWaitsSaysForWhat) {
  PlainProgress progress(kInterval);
  const JobStatus status = {
      .state = JobState::kStarting,
      .train_steps = 1500,
      .waits = {{"chief", "worker 1 to register", absl::Seconds(2)}}};

  EXPECT_THAT(progress.Next(status, std::nullopt, At(0)),
              Optional(Eq("starting: step 0 of 1500, chief waits for worker 1 "
                          "to register (2.0 s)")));
  EXPECT_EQ(progress.Next(status, std::nullopt, At(1)), std::nullopt);
}

TEST(PlainProgressTest, AStepThatWaitsLongSaysForWhat) {
  PlainProgress progress(kInterval);
  progress.Next(Training(0), std::nullopt, At(0));
  JobStatus status = Training(3);
  status.waits = {{"step 4", "1 more gradient", absl::Seconds(8)}};

  EXPECT_THAT(
      progress.Next(status, std::nullopt, At(5)),
      Optional(HasSubstr(", step 4 waits for 1 more gradient (8.0 s)")));
}

TEST(PlainProgressTest, TheEndIsLeftToTheLastLine) {
  PlainProgress progress(kInterval);
  JobStatus status = Training(1500);
  status.state = JobState::kDone;

  EXPECT_EQ(progress.Next(status, std::nullopt, At(100)), std::nullopt);
}

}  // namespace
}  // namespace lockstep::cli
