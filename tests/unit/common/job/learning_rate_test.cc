#include "common/job/learning_rate.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

using Schedule = LearningRateConfig::Schedule;

constexpr double kTolerance = 1e-15;

LearningRateConfig Config(Schedule schedule, double base) {
  LearningRateConfig config;
  config.schedule = schedule;
  config.base = base;
  return config;
}

TEST(LearningRateTest, ConstantNeverMoves) {
  const LearningRateConfig config = Config(Schedule::kConstant, 0.25);

  EXPECT_EQ(LearningRate(config, 0), 0.25);
  EXPECT_EQ(LearningRate(config, 1'000'000'000'000), 0.25);
}

TEST(LearningRateTest, ExponentialDecayIsSmooth) {
  LearningRateConfig config = Config(Schedule::kExponentialDecay, 0.1);
  config.decay_steps = 100;
  config.decay_rate = 0.25;

  EXPECT_EQ(LearningRate(config, 0), 0.1);
  EXPECT_NEAR(LearningRate(config, 50), 0.05, kTolerance);
  EXPECT_NEAR(LearningRate(config, 100), 0.025, kTolerance);
  EXPECT_NEAR(LearningRate(config, 150), 0.0125, kTolerance);
}

TEST(LearningRateTest, StaircaseDecaysAtWholePeriodsOnly) {
  LearningRateConfig config = Config(Schedule::kExponentialDecay, 0.1);
  config.decay_steps = 100;
  config.decay_rate = 0.5;
  config.staircase = true;

  EXPECT_EQ(LearningRate(config, 99), 0.1);
  EXPECT_NEAR(LearningRate(config, 100), 0.05, kTolerance);
  EXPECT_NEAR(LearningRate(config, 199), 0.05, kTolerance);
  EXPECT_NEAR(LearningRate(config, 200), 0.025, kTolerance);
}

TEST(LearningRateTest, PiecewiseBoundaryBelongsToTheValueBeforeIt) {
  LearningRateConfig config = Config(Schedule::kPiecewiseConstant, 7);
  config.boundaries = {100, 200};
  config.values = {1.0, 0.5, 0.1};

  EXPECT_EQ(LearningRate(config, 0), 1.0);
  EXPECT_EQ(LearningRate(config, 100), 1.0);
  EXPECT_EQ(LearningRate(config, 101), 0.5);
  EXPECT_EQ(LearningRate(config, 200), 0.5);
  EXPECT_EQ(LearningRate(config, 201), 0.1);
}

TEST(LearningRateTest, CosineGoesFromBaseToItsFloorAndStays) {
  LearningRateConfig config = Config(Schedule::kCosineDecay, 0.4);
  config.decay_steps = 1000;
  config.alpha = 0.25;

  EXPECT_NEAR(LearningRate(config, 0), 0.4, kTolerance);
  EXPECT_NEAR(LearningRate(config, 500), 0.25, kTolerance);
  EXPECT_NEAR(LearningRate(config, 1000), 0.1, kTolerance);
  EXPECT_NEAR(LearningRate(config, 5000), 0.1, kTolerance);
}

TEST(LearningRateTest, CosineWithoutFloorEndsAtZero) {
  LearningRateConfig config = Config(Schedule::kCosineDecay, 1.0);
  config.decay_steps = 4;

  // (1 + cos(pi / 4)) / 2
  EXPECT_NEAR(LearningRate(config, 1), 0.85355339059327373, kTolerance);
  EXPECT_NEAR(LearningRate(config, 4), 0, kTolerance);
}

TEST(LearningRateTest, WarmUpRisesLinearlyFromZero) {
  LearningRateConfig config = Config(Schedule::kConstant, 0.8);
  config.warmup_steps = 4;

  EXPECT_EQ(LearningRate(config, 0), 0);
  EXPECT_EQ(LearningRate(config, 1), 0.2);
  EXPECT_NEAR(LearningRate(config, 3), 0.6, kTolerance);
  EXPECT_EQ(LearningRate(config, 4), 0.8);
  EXPECT_EQ(LearningRate(config, 5), 0.8);
}

TEST(LearningRateTest, WarmUpMultipliesTheSchedule) {
  LearningRateConfig config = Config(Schedule::kExponentialDecay, 1.0);
  config.decay_steps = 2;
  config.decay_rate = 0.25;
  config.warmup_steps = 4;

  EXPECT_NEAR(LearningRate(config, 2), 0.25 * 0.5, kTolerance);
}

TEST(LearningRateTest, SettingsOutOfRangeGiveANumber) {
  for (const auto schedule :
       {Schedule::kExponentialDecay, Schedule::kPiecewiseConstant,
        Schedule::kCosineDecay}) {
    LearningRateConfig config = Config(schedule, 0.5);
    config.boundaries = {10};
    config.values = {};

    for (const int64_t step :
         {int64_t{0}, int64_t{11}, std::numeric_limits<int64_t>::max()}) {
      EXPECT_EQ(LearningRate(config, step), 0.5);
    }
  }
}

TEST(LearningRateTest, RateInEffectHasScheduleAndScale) {
  JobConfig job;
  job.train_steps = 100;
  job.learning_rate.base = 0.5;
  job.learning_rate.schedule = LearningRateConfig::Schedule::kCosineDecay;
  EXPECT_DOUBLE_EQ(LearningRateInEffect(job, 1, 0), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateInEffect(job, 0.5, 50), 0.125);
  EXPECT_NEAR(LearningRateInEffect(job, 1, 100), 0, 1e-12);
}

}  // namespace
}  // namespace lockstep
