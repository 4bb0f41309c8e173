#include "server/shard/parts/job_rules.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::HasSubstr;

JobConfig Job() {
  JobConfig job;
  job.train_steps = 100;
  job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  job.variable_optimizers = {{.variables = "wide/*"}};
  return job;
}

std::string DifferenceAfter(const std::function<void(JobConfig&)>& edit) {
  JobConfig edited = Job();
  edit(edited);
  return DifferenceOfRules(Job(), edited);
}

TEST(JobRulesTest, EditedRuleIsNamedWithBothValues) {
  EXPECT_EQ(DifferenceOfRules(Job(), Job()), "");
  EXPECT_EQ(DifferenceAfter([](JobConfig& job) { job.optimizer.momentum = 0; }),
            "optimizer.momentum: 0.9 -> 0");
  EXPECT_THAT(
      DifferenceAfter([](JobConfig& job) { job.learning_rate.base = 0.5; }),
      HasSubstr("learning_rate: 0.01 -> 0.5"));
}

TEST(JobRulesTest, AllThatServersComputeByIsARule) {
  using Edit = std::function<void(JobConfig&)>;
  const Edit edits[] = {
      [](JobConfig& job) { job.refuse_non_finite = false; },
      [](JobConfig& job) { job.moving_average.decay = 0.9; },
      [](JobConfig& job) { job.untrained = {"b"}; },
      [](JobConfig& job) {
        job.constraints = {{"w", VariableConstraint::Kind::kNonNegative, 0}};
      },
      [](JobConfig& job) {
        job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 1};
      },
      [](JobConfig& job) {
        job.variable_optimizers[0].optimizer.emplace().beta1 = 0.5;
      },
      [](JobConfig& job) { job.variable_optimizers[0].learning_rate = 7; },
      [](JobConfig& job) { job.learning_rate.warmup_steps = 3; },
      [](JobConfig& job) {
        job.strategy.communication.order = SumOrder::kRing;
      },
      [](JobConfig& job) { job.strategy.communication.bytes_per_pack = 0; },
  };
  for (const Edit& edit : edits) EXPECT_NE(DifferenceAfter(edit), "");
}

TEST(JobRulesTest, EndOfTrainingIsARuleOfSchedulesThatLastAsLongAsTheJob) {
  JobConfig before = Job();
  JobConfig after = before;
  after.train_steps = 200;
  EXPECT_EQ(DifferenceOfRules(before, after), "");

  before.learning_rate.schedule = LearningRateConfig::Schedule::kCosineDecay;
  after.learning_rate.schedule = LearningRateConfig::Schedule::kCosineDecay;
  EXPECT_NE(DifferenceOfRules(before, after), "");
  before.learning_rate.decay_steps = after.learning_rate.decay_steps = 50;
  EXPECT_EQ(DifferenceOfRules(before, after), "");
}

TEST(JobRulesTest, FieldsOfOtherProcessesAreNoRules) {
  EXPECT_EQ(DifferenceAfter([](JobConfig& job) {
              job.clipping = {ClippingConfig::Kind::kGlobalNorm, 1};
              job.moving_average.evaluate = false;
              job.lease = absl::Seconds(3);
              job.checkpoint.every_steps = 5;
              job.batch_size = 7;
            }),
            "");
}

}  // namespace
}  // namespace lockstep::server
