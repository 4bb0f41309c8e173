#include "common/job/codec/variable_settings_codec.h"

#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/job_override.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ApplyOverride;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kText[] = R"(
variable_optimizers {
  variables: "wide/*"
  optimizer { kind: FTRL l1: 0.5 }
  learning_rate: 0.25
  learning_rate_schedule { kind: COSINE_DECAY decay_steps: 7 }
}
variable_optimizers { variables: "deep/*" optimizer { kind: ADAGRAD } }
moving_average { decay: 0.75 count_steps: true variables: "*" evaluate: false }
constraints { variables: "a" kind: NON_NEGATIVE }
constraints { variables: "b" kind: MAX_NORM max_norm: 2 }
untrained: "c/*" untrained: "d"
)";

void ExpectWhole(const JobConfig& job) {
  ASSERT_EQ(job.variable_optimizers.size(), 2u);
  const VariableOptimizer& wide = job.variable_optimizers[0];
  EXPECT_EQ(wide.variables, "wide/*");
  EXPECT_EQ(wide.optimizer->kind, OptimizerConfig::Kind::kFtrl);
  EXPECT_EQ(wide.optimizer->l1, 0.5);
  EXPECT_EQ(wide.learning_rate, 0.25);
  ASSERT_TRUE(wide.schedule.has_value());
  EXPECT_EQ(wide.schedule->decay_steps, 7);
  EXPECT_FALSE(job.variable_optimizers[1].learning_rate.has_value());
  EXPECT_FALSE(job.variable_optimizers[1].schedule.has_value());
  EXPECT_EQ(job.moving_average.decay, 0.75);
  EXPECT_TRUE(job.moving_average.count_steps);
  EXPECT_THAT(job.moving_average.variables, ElementsAre("*"));
  EXPECT_FALSE(job.moving_average.evaluate);
  ASSERT_EQ(job.constraints.size(), 2u);
  EXPECT_EQ(job.constraints[0].kind, VariableConstraint::Kind::kNonNegative);
  EXPECT_EQ(job.constraints[1].max_norm, 2);
  EXPECT_THAT(job.untrained, ElementsAre("c/*", "d"));
}

TEST(VariableSettingsCodecTest, FieldsAreReadAndGivenBack) {
  const auto job = ParseJobText(kText, "job.txt");

  ASSERT_OK(job);
  ExpectWhole(*job);
  const auto again = FromProto(ToProto(*job));
  ASSERT_OK(again);
  ExpectWhole(*again);
}

TEST(VariableSettingsCodecTest, RateOfAnOptimizerFollowsAnOverrideOfTheJobs) {
  auto job = ParseJobText(kText, "job.txt");
  ASSERT_OK(job);

  ASSERT_OK(ApplyOverride("learning_rate=4", *job));

  EXPECT_EQ(LearningRatesOf(*job)[1].base, 0.25);
  EXPECT_EQ(LearningRatesOf(*job)[2].base, 4);
}

TEST(VariableSettingsCodecTest, WithoutAnOptimizerItHasTheJobs) {
  auto job = ParseJobText(
      "optimizer { kind: ADAM } "
      "variable_optimizers { variables: \"w\" learning_rate: 0.5 }",
      "job.txt");
  ASSERT_OK(job);
  EXPECT_EQ(OptimizersOf(*job)[1].kind, OptimizerConfig::Kind::kAdam);
  // Also if that is changed later.
  ASSERT_OK(ApplyOverride("optimizer.beta1=0.5", *job));
  const auto again = FromProto(ToProto(*job));
  ASSERT_OK(again);
  EXPECT_EQ(OptimizersOf(*again)[1].beta1, 0.5);

  job->local_steps = 4;
  EXPECT_EQ(OptimizersOf(*job)[1].kind,
            OptimizerConfig::Kind::kGradientDescent);
}

TEST(VariableSettingsCodecTest, ListsOfFieldsAreForTheJobFile) {
  JobConfig job;
  for (const char* assignment :
       {"variable_optimizers=x", "constraints.kind=MAX_NORM"}) {
    EXPECT_THAT(ApplyOverride(assignment, job),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("set it in the job file")));
  }
}

TEST(VariableSettingsCodecTest, NumbersWithoutANameAreRefused) {
  v1::JobConfig proto;
  proto.add_constraints()->set_kind(
      static_cast<v1::VariableConstraint::Kind>(9));
  EXPECT_THAT(FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("constraints.kind is the number 9")));
}

}  // namespace
}  // namespace lockstep
