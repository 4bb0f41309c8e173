#include "common/job/rounding_checks.h"

#include <functional>
#include <string>

#include "common/job/training_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Kind = OptimizerConfig::Kind;
using Clip = ClippingConfig::Kind;

struct Lost {
  DType type;
  std::string message;
  std::function<void(JobConfig&)> change;
};

class LostNumberTest : public ::testing::TestWithParam<Lost> {};

TEST_P(LostNumberTest, IsNamedWithItsValueAndWhatIsAllowed) {
  JobConfig job;
  job.model.variable_type = GetParam().type;
  ASSERT_OK(CheckTraining(job));
  GetParam().change(job);
  EXPECT_THAT(CheckTraining(job), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Shares, LostNumberTest,
    ::testing::Values(
        Lost{DType::kFloat32,
             "optimizer.beta2 is 0.99999999, but must be at most 0.9999999",
             [](JobConfig& job) {
               job.optimizer = {.kind = Kind::kAdam, .beta2 = 0.99999999};
             }},
        Lost{DType::kFloat16,
             "optimizer.beta1 is 0.9999, but must be at most 0.9997: a larger "
             "one is 1 where variables are float16",
             [](JobConfig& job) {
               job.optimizer = {
                   .kind = Kind::kLazyAdam, .beta1 = 0.9999, .epsilon = 1e-4};
             }},
        Lost{DType::kBFloat16, "optimizer.momentum is 0.99999999",
             [](JobConfig& job) {
               job.optimizer = {.kind = Kind::kMomentum,
                                .momentum = 0.99999999};
             }},
        Lost{DType::kFloat16, "optimizer.decay is 0.9999",
             [](JobConfig& job) {
               job.optimizer = {
                   .kind = Kind::kRmsProp, .epsilon = 1e-4, .decay = 0.9999};
             }},
        Lost{DType::kFloat64, "optimizer.rho is 0.99999999",
             [](JobConfig& job) {
               job.optimizer = {.kind = Kind::kAdadelta, .rho = 0.99999999};
             }},
        Lost{DType::kFloat16,
             "moving_average.decay is 0.99999999, but must be at most "
             "0.9999999",
             [](JobConfig& job) { job.moving_average.decay = 0.99999999; }}));

INSTANTIATE_TEST_SUITE_P(
    Divisors, LostNumberTest,
    ::testing::Values(
        Lost{DType::kFloat32,
             "optimizer.epsilon is 1e-40, but must be at least 1.2e-38",
             [](JobConfig& job) {
               job.optimizer = {.kind = Kind::kAdamW, .epsilon = 1e-40};
             }},
        Lost{DType::kFloat16,
             "variable_optimizers[0].optimizer.initial_accumulator_value is "
             "1e-08, but must be above 3e-8",
             [](JobConfig& job) {
               job.variable_optimizers = {
                   {"w",
                    OptimizerConfig{.kind = Kind::kAdagrad,
                                    .initial_accumulator_value = 1e-8},
                    {},
                    {}}};
             }}));

INSTANTIATE_TEST_SUITE_P(
    RatesAndLimits, LostNumberTest,
    ::testing::Values(
        Lost{DType::kFloat32, "learning_rate is 1e-46",
             [](JobConfig& job) { job.learning_rate.base = 1e-46; }},
        Lost{DType::kFloat32, "learning_rate is 1e+39",
             [](JobConfig& job) { job.learning_rate.base = 1e39; }},
        Lost{DType::kFloat16, "learning_rate is 1e-08",
             [](JobConfig& job) { job.learning_rate.base = 1e-8; }},
        Lost{DType::kFloat32, "learning_rate_schedule.values[1] is 1e-46",
             [](JobConfig& job) {
               job.learning_rate.schedule =
                   LearningRateConfig::Schedule::kPiecewiseConstant;
               job.learning_rate.boundaries = {5};
               job.learning_rate.values = {0.1, 1e-46};
             }},
        Lost{DType::kFloat32, "clipping.limit is 1e+38, but must be at most",
             [](JobConfig& job) {
               job.clipping = {Clip::kGlobalNorm, 1e38};
             }},
        Lost{DType::kFloat32, "clipping.limit is 1e-46",
             [](JobConfig& job) {
               job.clipping = {Clip::kMeanGlobalNorm, 1e-46};
             }},
        Lost{DType::kFloat16, "clipping.limit is 1e-08",
             [](JobConfig& job) {
               job.clipping = {Clip::kValue, 1e-8};
             }},
        Lost{DType::kFloat16, "clipping.limit is 1e+05", [](JobConfig& job) {
               job.clipping = {Clip::kNorm, 1e5};
             }}));

TEST(RoundingChecksTest, RatesAreNamedWhereTheJobHasThem) {
  JobConfig job;
  job.model.variable_type = DType::kFloat16;
  job.optimizer.kind = Kind::kAdamW;  // computes in float32
  job.optimizer.epsilon = 1e-4;
  job.learning_rate.base = 1e-8;
  job.variable_optimizers = {{"w", OptimizerConfig(), {}, {}}};
  EXPECT_THAT(CheckRoundings(job), StatusIs(absl::StatusCode::kInvalidArgument,
                                            StartsWith("learning_rate is")));
  job.variable_optimizers[0].learning_rate = 1e-9;
  EXPECT_THAT(CheckRoundings(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("variable_optimizers[0].learning_rate is")));
}

// The variables of a program have types that the job does not name.
TEST(RoundingChecksTest, LimitOfAProgramIsJudgedByTheTypeOfItsGradients) {
  const ClippingConfig wide{Clip::kGlobalNorm, 1e40};
  JobConfig job;
  job.clipping = wide;
  EXPECT_THAT(CheckRoundings(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("clipping.limit is 1e+40")));
  job.model.kind = kExternalModel;
  EXPECT_OK(CheckRoundings(job));

  EXPECT_OK(CheckClippingLimit(wide, DType::kFloat64));
  EXPECT_OK(CheckClippingLimit({Clip::kNorm, 1e-300}, DType::kFloat64));
  for (const DType type :
       {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    EXPECT_THAT(CheckClippingLimit(wide, type),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(CheckClippingLimit({Clip::kGlobalNorm, 1e308}, DType::kFloat64),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 4.4e307")));
}

TEST(RoundingChecksTest, NumbersThatAreHeldAreTaken) {
  JobConfig job;
  job.optimizer = {.kind = Kind::kAdam,
                   .beta1 = 0.9999,
                   .beta2 = 0.9999999,
                   .epsilon = 1e-37};
  job.learning_rate.base = 1e-37;
  job.moving_average.decay = 0.9999999;
  for (const ClippingConfig& clipping :
       {ClippingConfig{Clip::kGlobalNorm, 1e37},
        ClippingConfig{Clip::kNorm, 1e38},
        ClippingConfig{Clip::kMeanGlobalNorm, 1e39}}) {
    job.clipping = clipping;
    EXPECT_OK(CheckTraining(job));
  }
  // Neither a norm nor a rule that has no such number is limited.
  job.clipping = {Clip::kValue, 1e39};
  job.optimizer = {.kind = Kind::kAdamTorch, .beta2 = 0.99999999};
  EXPECT_OK(CheckTraining(job));
}

TEST(RoundingChecksTest, NumbersOfLocalStepsAreChecked) {
  JobConfig job;
  job.local_steps = 2;
  job.local.learning_rate.base = 0.1;
  EXPECT_OK(CheckLocalSteps(job));
  job.local.optimizer = {.kind = Kind::kAdam, .beta1 = 0.99999999};
  EXPECT_THAT(CheckLocalSteps(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("local.optimizer.beta1 is 0.99999999")));
}

TEST(RoundingChecksTest, AnEpsilonThatFloat16HasNotIsRefused) {
  JobConfig job;
  job.model.variable_type = DType::kFloat16;
  EXPECT_OK(CheckTraining(job));  // gradient descent has none
  for (const Kind kind : {Kind::kAdam, Kind::kLazyAdam, Kind::kAdadelta,
                          Kind::kRmsProp, Kind::kAdamTorch, Kind::kAdamW}) {
    job.variable_optimizers = {
        {"w", OptimizerConfig{.kind = kind, .epsilon = 1e-8}, {}, {}}};
    EXPECT_THAT(CheckTraining(job),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("optimizer.epsilon is 1e-08, but must be "
                                   "above 3e-8")));
    job.variable_optimizers[0].optimizer->epsilon = 1e-4;
    EXPECT_OK(CheckTraining(job));
  }
}

}  // namespace
}  // namespace lockstep
