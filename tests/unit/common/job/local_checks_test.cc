#include "common/job/local_checks.h"

#include <string>

#include "common/job/training_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

JobConfig WithLocalSteps() {
  JobConfig job;
  job.train_steps = 100;
  job.local_steps = 16;
  job.local.learning_rate.base = 0.1;
  return job;
}

auto Refuses(const std::string& field, const std::string& fix) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(field), HasSubstr(fix)));
}

// CheckLocalSteps() calls the function under test.

TEST(LocalChecksTest, RulesThatForgetTheValuesOfThePassBeforeAreRefused) {
  JobConfig job = WithLocalSteps();
  job.local.optimizer.kind = OptimizerConfig::Kind::kFtrl;
  EXPECT_THAT(CheckLocalSteps(job),
              Refuses("local.optimizer.kind is FTRL", "another rule"));
  job.local.optimizer.kind = OptimizerConfig::Kind::kAdagradDa;
  EXPECT_THAT(CheckLocalSteps(job),
              Refuses("local.optimizer.kind is ADAGRAD_DA", "another rule"));
  job.local.optimizer.kind = OptimizerConfig::Kind::kAdagrad;
  EXPECT_OK(CheckLocalSteps(job));
  // Servers keep their state.
  job.optimizer.kind = OptimizerConfig::Kind::kFtrl;
  EXPECT_OK(CheckLocalSteps(job));
}

TEST(LocalChecksTest, RulesOfSomeVariablesAreCheckedToo) {
  JobConfig job = WithLocalSteps();
  job.variable_optimizers = {{.variables = "b", .learning_rate = 0.1},
                             {.variables = "w", .learning_rate = 0.1}};
  EXPECT_OK(CheckLocalSteps(job));
  job.variable_optimizers[1].optimizer.emplace().kind =
      OptimizerConfig::Kind::kFtrl;
  EXPECT_THAT(
      CheckLocalSteps(job),
      Refuses("variable_optimizers[1].optimizer.kind is FTRL", "another rule"));
}

TEST(LocalChecksTest, RateOfTheServersIsNoDefaultOfALocalRate) {
  JobConfig job = WithLocalSteps();
  job.variable_optimizers = {{.variables = "b"}};
  EXPECT_THAT(CheckLocalSteps(job),
              Refuses("variable_optimizers[0].learning_rate is not set",
                      "give its rate"));
  job.variable_optimizers[0].schedule = LearningRateConfig{
      .schedule = LearningRateConfig::Schedule::kPiecewiseConstant,
      .boundaries = {10},
      .values = {0.1, 0.01}};
  EXPECT_OK(CheckLocalSteps(job));
}

}  // namespace
}  // namespace lockstep
