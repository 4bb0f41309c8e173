#include "common/job/learning_rate.h"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

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

TEST(LearningRateTest, FtrlIsToldOfTheLowestRateIfThatIsZero) {
  OptimizerConfig ftrl;
  ftrl.kind = OptimizerConfig::Kind::kFtrl;
  const auto is_zero = [&](double rate, DType type, double scale = 1) {
    const LearningRateConfig config = Config(Schedule::kConstant, rate);
    return ZeroRateOfFtrl(ftrl, config, 10, type, scale).has_value();
  };

  for (const DType type :
       {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    EXPECT_FALSE(is_zero(1e-37, type));
    EXPECT_TRUE(is_zero(1e-40, type)) << "updates flush subnormal numbers";
    EXPECT_TRUE(is_zero(1e-20, type, 1e-30));
  }
  EXPECT_FALSE(is_zero(4e-8, DType::kFloat16));
  EXPECT_TRUE(is_zero(1e-9, DType::kFloat16));
  EXPECT_FALSE(is_zero(1e-9, DType::kFloat16, 100));
  EXPECT_EQ(
      ZeroRateOfFtrl({}, Config(Schedule::kConstant, 0), 10, DType::kFloat32),
      std::nullopt)
      << "other rules do not divide by it";
}

TEST(LearningRateTest, LowestRateMayBeThatOfAnyStep) {
  OptimizerConfig ftrl;
  ftrl.kind = OptimizerConfig::Kind::kFtrl;
  const auto zero = [&](const LearningRateConfig& config) {
    return ZeroRateOfFtrl(ftrl, config, 10, DType::kFloat32);
  };
  LearningRateConfig grows = Config(Schedule::kExponentialDecay, 1e-50);
  grows.decay_steps = 1;
  grows.decay_rate = 1e10;
  LearningRateConfig pieces = Config(Schedule::kPiecewiseConstant, 1);
  pieces.boundaries = {3, 5, 12};
  pieces.values = {1, 1e-50, 1, 0};

  ASSERT_TRUE(zero(grows).has_value());
  EXPECT_EQ(zero(grows)->step, 0);
  ASSERT_TRUE(zero(pieces).has_value());
  EXPECT_EQ(zero(pieces)->step, 4);
  EXPECT_EQ(zero(pieces)->rate, 1e-50);
  pieces.values[1] = 0.5;
  EXPECT_FALSE(zero(pieces).has_value()) << "the job ends before the last one";
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

// A step and the rate of an optimizer in Python at that step.
struct Recorded {
  int64_t step;
  double rate;
};

// What `param_groups[0]["lr"]` was under torch 1.13's LambdaLR with base 0.3
// and lambda s: s / 10 if s < 10 else max(0, (100 - s) / 90).
TEST(LearningRateTest, LinearDecayWithWarmUpIsThatOfALambdaLr) {
  LearningRateConfig config = Config(Schedule::kLinear, 0.3);
  config.warmup_steps = 10;
  config.decay_steps = 100;

  for (const auto& [step, rate] :
       std::initializer_list<Recorded>{{0, 0.0},
                                       {1, 0.03},
                                       {7, 0.21},
                                       {9, 0.27},
                                       {10, 0.3},
                                       {11, 0.2966666666666667},
                                       {25, 0.25},
                                       {50, 0.16666666666666666},
                                       {64, 0.12},
                                       {99, 0.0033333333333333335},
                                       {100, 0.0},
                                       {120, 0.0}}) {
    EXPECT_NEAR(LearningRate(config, step), rate, kTolerance) << step;
  }
}

// The same with max(0, (1 + cos(pi (s - 10) / 90)) / 2) after the warm-up.
TEST(LearningRateTest, CosineWithWarmUpIsThatOfALambdaLr) {
  LearningRateConfig config = Config(Schedule::kCosine, 0.3);
  config.warmup_steps = 10;
  config.decay_steps = 100;

  for (const auto& [step, rate] :
       std::initializer_list<Recorded>{{0, 0.0},
                                       {1, 0.03},
                                       {7, 0.21},
                                       {9, 0.27},
                                       {10, 0.3},
                                       {11, 0.2999086240528644},
                                       {25, 0.27990381056766583},
                                       {50, 0.17604722665003958},
                                       {64, 0.1036474508437579},
                                       {99, 9.137594713563568e-05},
                                       {100, 0.0}}) {
    EXPECT_NEAR(LearningRate(config, step), rate, kTolerance) << step;
  }
  EXPECT_EQ(LearningRate(config, 1'000'000), 0.0);  // and does not rise again
}

// CosineAnnealingLR(T_max=80, eta_min=0.02), and LinearLR from 1 to 0.02 / 0.3
// over 80 steps. Both compute a rate from the one before, and so round at each
// step.
TEST(LearningRateTest, DecayEndsAtTheMinimum) {
  LearningRateConfig config = Config(Schedule::kCosine, 0.3);
  config.decay_steps = 80;
  config.minimum = 0.02;
  for (const auto& [step, rate] :
       std::initializer_list<Recorded>{{0, 0.3},
                                       {1, 0.2998920650737012},
                                       {13, 0.28214944099019157},
                                       {40, 0.1600000000000001},
                                       {64, 0.04673762078750737},
                                       {79, 0.020107934926298796},
                                       {80, 0.02}}) {
    EXPECT_NEAR(LearningRate(config, step), rate, 2e-16 * 80) << step;
  }
  EXPECT_EQ(LearningRate(config, 81), 0.02);

  config.schedule = Schedule::kLinear;
  for (const auto& [step, rate] :
       std::initializer_list<Recorded>{{0, 0.3},
                                       {1, 0.2965},
                                       {13, 0.25449999999999995},
                                       {40, 0.1599999999999999},
                                       {64, 0.07599999999999993},
                                       {79, 0.023499999999999976},
                                       {80, 0.01999999999999998}}) {
    EXPECT_NEAR(LearningRate(config, step), rate, 2e-16 * 80) << step;
  }
}

}  // namespace
}  // namespace lockstep
