#include "common/job/job_warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobConfig Job() {
  JobConfig job;
  job.train_steps = 4000;
  job.learning_rate.base = 0.5;
  job.learning_rate.schedule = LearningRateConfig::Schedule::kCosineDecay;
  return job;
}

TEST(JobWarningsTest, ScheduleThatEndsBeforeTheTrainingIsNamed) {
  JobConfig job = Job();
  job.learning_rate.decay_steps = 1500;
  job.learning_rate.alpha = 0.5;
  EXPECT_THAT(
      JobWarnings(job),
      ElementsAre(AllOf(
          HasSubstr("learning_rate_schedule.decay_steps is 1500, train_steps "
                    "is 4000: the last 2500 steps"),
          HasSubstr("at a learning rate of 0.25"))));
  job.learning_rate.decay_steps = 4000;
  EXPECT_THAT(JobWarnings(job), IsEmpty());
}

TEST(JobWarningsTest, DecayLastsAsLongAsTheTrainingByDefault) {
  EXPECT_THAT(JobWarnings(Job()), IsEmpty());
  EXPECT_EQ(LearningRatesOf(Job())[0].decay_steps, 4000);
}

TEST(JobWarningsTest, ScheduleOfSomeVariablesIsNamed) {
  JobConfig job = Job();
  job.variable_optimizers.resize(2);
  job.variable_optimizers[1].schedule = job.learning_rate;
  job.variable_optimizers[1].schedule->decay_steps = 10;
  EXPECT_THAT(JobWarnings(job),
              ElementsAre(HasSubstr(
                  "variable_optimizers[1].learning_rate_schedule.decay_steps "
                  "is 10")));
}

TEST(JobWarningsTest, ScheduleOfLocalStepsCountsThem) {
  JobConfig job;
  job.train_steps = 1000;
  job.local_steps = 16;
  job.learning_rate.base = 1;
  job.local.learning_rate = Job().learning_rate;
  EXPECT_THAT(JobWarnings(job), IsEmpty());
  job.local.learning_rate.decay_steps = 1000;
  EXPECT_THAT(
      JobWarnings(job),
      ElementsAre(HasSubstr(
          "local.learning_rate_schedule.decay_steps is 1000, train_steps * "
          "local_steps is 16000: the last 15000 steps")));
}

TEST(JobWarningsTest, ScheduleThatNeverEndsGivesNoWarning) {
  JobConfig job = Job();
  job.learning_rate.schedule = LearningRateConfig::Schedule::kExponentialDecay;
  job.learning_rate.decay_steps = 10;
  EXPECT_THAT(JobWarnings(job), IsEmpty());
}

TEST(JobWarningsTest, RateThatAppliesLittleOfTheLocalStepsIsNamed) {
  JobConfig job;
  job.train_steps = 10;
  job.local_steps = 16;
  job.learning_rate.base = 0.01;
  EXPECT_THAT(JobWarnings(job),
              ElementsAre(AllOf(HasSubstr("learning_rate is 0.01"),
                                HasSubstr("local_steps is 16"),
                                HasSubstr("set it to 1"))));
  job.learning_rate.base = 0.7;  // DiLoCo's
  EXPECT_THAT(JobWarnings(job), IsEmpty());
  job.learning_rate.base = 0.01;
  job.optimizer.kind = OptimizerConfig::Kind::kAdam;  // its steps are as large
  EXPECT_THAT(JobWarnings(job), IsEmpty());
  job.optimizer.kind = OptimizerConfig::Kind::kGradientDescent;
  job.local_steps = 1;
  EXPECT_THAT(JobWarnings(job), IsEmpty());
}

TEST(JobWarningsTest, TokensAreOfCompatibleModeAlone) {
  JobConfig job;
  job.train_steps = 1;
  job.initial_tokens = 2;
  EXPECT_THAT(JobWarnings(job),
              ElementsAre(AllOf(HasSubstr("initial_tokens is 2"),
                                HasSubstr("mode is STRICT"))));
  job.mode = SyncMode::kCompatible;
  EXPECT_THAT(JobWarnings(job), IsEmpty());
}

}  // namespace
}  // namespace lockstep
