#include "common/job/training_checks.h"

#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Change = std::function<void(JobConfig&)>;
using Constraint = VariableConstraint::Kind;

absl::Status CheckWith(const Change& change) {
  JobConfig job;
  change(job);
  return CheckTraining(job);
}

TEST(TrainingChecksTest, DefaultsAreTaken) {
  EXPECT_OK(CheckTraining(JobConfig()));
}

TEST(TrainingChecksTest, SettingsOfVariablesInRangeAreTaken) {
  EXPECT_OK(CheckWith([](JobConfig& job) {
    job.variable_optimizers.resize(kMaxOptimizers - 1);
    for (VariableOptimizer& other : job.variable_optimizers) {
      other.variables = "deep/*";
      other.optimizer.emplace().kind = OptimizerConfig::Kind::kAdagrad;
      other.learning_rate = 1;
    }
    job.moving_average = {0.999, true, {"*"}, false};
    job.constraints = {{"a", Constraint::kNonNegative, 0},
                       {"b", Constraint::kMaxNorm, 2}};
  }));
}

struct Bad {
  std::string message;
  Change change;
};

class BadTrainingTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadTrainingTest, NamesFieldValueAndRange) {
  EXPECT_THAT(CheckWith(GetParam().change),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTrainingTest,
    ::testing::Values(
        Bad{"clipping.kind is MEAN_GLOBAL_NORM, which needs one set of "
            "gradients for all variables, but mode is COMPATIBLE; set mode to "
            "STRICT",
            [](JobConfig& job) {
              job.mode = SyncMode::kCompatible;
              job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 1};
            }},
        Bad{"clipping.limit is 0, but must be a finite number above 0",
            [](JobConfig& job) {
              job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 0};
            }},
        Bad{"learning_rate_schedule.minimum is 0.5, but must be from 0 to the "
            "learning rate, 0.1",
            [](JobConfig& job) {
              job.train_steps = 10;
              job.learning_rate.base = 0.1;
              job.learning_rate.schedule =
                  LearningRateConfig::Schedule::kCosine;
              job.learning_rate.minimum = 0.5;
            }},
        Bad{"learning_rate_schedule.minimum is 0.01, but must be absent: kind "
            "is not LINEAR_DECAY or COSINE",
            [](JobConfig& job) { job.learning_rate.minimum = 0.01; }},
        Bad{"learning_rate_schedule.warmup_steps is 10, but must be below "
            "decay_steps, which is 10",
            [](JobConfig& job) {
              job.train_steps = 10;
              job.learning_rate.schedule =
                  LearningRateConfig::Schedule::kLinear;
              job.learning_rate.warmup_steps = 10;
            }},
        Bad{"optimizer.weight_decay is 0.1, but must be 0",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kAdam;
              job.optimizer.weight_decay = 0.1;
            }},
        Bad{"optimizer.weight_decay is -1",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kAdamW;
              job.optimizer.weight_decay = -1;
            }},
        Bad{"optimizer.weight_decay_exempt is set, but",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kSgd;
              job.optimizer.weight_decay_exempt = {"*bias"};
            }},
        Bad{"optimizer.weight_decay_exempt[0] must be a shell pattern",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kSgd;
              job.optimizer.weight_decay = 1;
              job.optimizer.weight_decay_exempt = {""};
            }},
        Bad{"optimizer.dampening is 0.5, but must be 0",
            [](JobConfig& job) { job.optimizer.dampening = 0.5; }},
        Bad{"optimizer.use_nesterov is true, but optimizer.momentum is 0 and "
            "optimizer.dampening is 0;",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kSgd;
              job.optimizer.momentum = 0;
              job.optimizer.use_nesterov = true;
            }},
        Bad{"optimizer.momentum is 0.9 and optimizer.dampening is 0.1;",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kSgd;
              job.optimizer.dampening = 0.1;
              job.optimizer.use_nesterov = true;
            }},
        Bad{"the number of variable_optimizers is 8, but must be at most 7",
            [](JobConfig& job) { job.variable_optimizers.resize(8); }},
        Bad{"variable_optimizers[0].variables must be a shell pattern",
            [](JobConfig& job) { job.variable_optimizers.resize(1); }},
        Bad{"variable_optimizers[0].optimizer.beta1 is 1, but must be at least "
            "0 and below 1",
            [](JobConfig& job) {
              job.variable_optimizers = {{"w", {}, {}, {}}};
              job.variable_optimizers[0].optimizer.emplace().beta1 = 1;
            }},
        Bad{"variable_optimizers[0].learning_rate is -1, but must be a finite "
            "number above 0",
            [](JobConfig& job) {
              job.variable_optimizers = {{"w", {}, -1, {}}};
            }},
        Bad{"variable_optimizers[0].learning_rate_schedule.decay_steps is -1",
            [](JobConfig& job) {
              job.variable_optimizers = {{"w", {}, {}, LearningRateConfig()}};
              job.variable_optimizers[0].schedule->decay_steps = -1;
            }},
        Bad{"moving_average.decay is 1, but must be at least 0 and below 1",
            [](JobConfig& job) { job.moving_average.decay = 1; }},
        Bad{"moving_average.decay is missing",
            [](JobConfig& job) { job.moving_average.variables = {"w"}; }},
        Bad{"moving_average.variables[1] must be a shell pattern",
            [](JobConfig& job) {
              job.moving_average = {0.5, false, {"w", ""}, true};
            }},
        Bad{"constraints[0].kind is 0, but must be NON_NEGATIVE or MAX_NORM",
            [](JobConfig& job) {
              job.constraints = {{"w", Constraint::kUnspecified, 0}};
            }},
        Bad{"constraints[0].max_norm is 0, but must be a finite number above 0",
            [](JobConfig& job) {
              job.constraints = {{"w", Constraint::kMaxNorm, 0}};
            }},
        Bad{"constraints[0].max_norm is 2, but must be absent",
            [](JobConfig& job) {
              job.constraints = {{"w", Constraint::kNonNegative, 2}};
            }},
        Bad{"untrained[1] must be a shell pattern",
            [](JobConfig& job) {
              job.untrained = {"a", ""};
            }},
        Bad{"optimizer.initial_accumulator_value is 0, but must be",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kAdagradDa;
              job.optimizer.initial_accumulator_value = 0;
            }},
        Bad{"learning_rate_schedule.warmup_steps is 3, but must be 0: the "
            "warm-up begins at a learning rate of 0, and optimizer.kind is "
            "FTRL",
            [](JobConfig& job) {
              job.optimizer.kind = OptimizerConfig::Kind::kFtrl;
              job.learning_rate.warmup_steps = 3;
            }},
        Bad{"learning_rate_schedule.warmup_steps is 3, but must be 0: the "
            "warm-up begins at a learning rate of 0, and "
            "variable_optimizers[0].optimizer.kind is FTRL",
            [](JobConfig& job) {
              job.learning_rate.warmup_steps = 3;
              job.variable_optimizers.resize(1);
              job.variable_optimizers[0].variables = "w";
              job.variable_optimizers[0].optimizer.emplace().kind =
                  OptimizerConfig::Kind::kFtrl;
            }},
        Bad{"variable_optimizers[0].learning_rate_schedule makes the learning "
            "rate of step 9 0, but variable_optimizers[0].optimizer.kind is "
            "FTRL",
            [](JobConfig& job) {
              job.train_steps = 10;
              job.variable_optimizers.resize(1);
              VariableOptimizer& other = job.variable_optimizers[0];
              other.variables = "w";
              other.optimizer.emplace().kind = OptimizerConfig::Kind::kFtrl;
              other.schedule.emplace();
              other.schedule->schedule = LearningRateConfig::Schedule::kLinear;
              other.schedule->decay_steps = 9;
            }},
        Bad{"variable_optimizers[0].learning_rate is 0.001, but must be at "
            "least 0.002, the minimum of the job's learning_rate_schedule",
            [](JobConfig& job) {
              job.learning_rate.schedule =
                  LearningRateConfig::Schedule::kCosine;
              job.learning_rate.minimum = 0.002;
              job.train_steps = 10;
              job.variable_optimizers.resize(1);
              job.variable_optimizers[0].variables = "w";
              job.variable_optimizers[0].learning_rate = 0.001;
            }},
        Bad{"variable_optimizers[0].learning_rate is 0.5, but must be absent: "
            "the kind of the job's learning_rate_schedule is "
            "PIECEWISE_CONSTANT, whose values are the rates; give it a "
            "learning_rate_schedule of its own",
            [](JobConfig& job) {
              job.learning_rate.schedule =
                  LearningRateConfig::Schedule::kPiecewiseConstant;
              job.learning_rate.values = {0.1};
              job.variable_optimizers = {{"w", {}, 0.5, {}}};
            }},
        Bad{"constraints[0].variables must be a shell pattern",
            [](JobConfig& job) {
              job.constraints = {{"", Constraint::kNonNegative, 0}};
            }}));

TEST(TrainingChecksTest, LearningRateOfAnOptimizerIsTheJobsUnlessItHasItsOwn) {
  JobConfig job;
  job.learning_rate.base = 0.5;
  job.learning_rate.warmup_steps = 3;
  LearningRateConfig decaying;
  decaying.warmup_steps = 9;
  job.variable_optimizers = {{"a", {}, {}, {}}, {"b", {}, 0.25, decaying}};

  const auto rates = LearningRatesOf(job);

  ASSERT_EQ(rates.size(), 3u);
  EXPECT_EQ(rates[1].base, 0.5);
  EXPECT_EQ(rates[1].warmup_steps, 3);
  EXPECT_EQ(rates[2].base, 0.25);
  EXPECT_EQ(rates[2].warmup_steps, 9);
}

TEST(TrainingChecksTest, RateBesideAScheduleOfItsOwnIsTaken) {
  EXPECT_OK(CheckWith([](JobConfig& job) {
    job.learning_rate.schedule =
        LearningRateConfig::Schedule::kPiecewiseConstant;
    job.learning_rate.values = {0.1};
    job.variable_optimizers = {{"a", {}, {}, {}},
                               {"b", {}, 0.5, LearningRateConfig()}};
  }));
}

TEST(TrainingChecksTest, SchedulesOfTrainingScriptsAreTaken) {
  for (const auto schedule : {LearningRateConfig::Schedule::kLinear,
                              LearningRateConfig::Schedule::kCosine}) {
    EXPECT_OK(CheckWith([schedule](JobConfig& job) {
      job.train_steps = 10;  // and so the decay_steps
      job.learning_rate.base = 0.1;
      job.learning_rate.schedule = schedule;
      job.learning_rate.warmup_steps = 9;
      job.learning_rate.minimum = 0.1;
    }));
  }
}

TEST(TrainingChecksTest, FtrlNeedsARateAboveZeroInEachStep) {
  using Schedule = LearningRateConfig::Schedule;
  for (const Schedule schedule :
       {Schedule::kLinear, Schedule::kCosine, Schedule::kCosineDecay}) {
    JobConfig job;
    job.train_steps = 10;
    job.optimizer.kind = OptimizerConfig::Kind::kFtrl;
    job.learning_rate.schedule = schedule;
    EXPECT_OK(CheckTraining(job));  // the rate would be 0 after the last step
    job.learning_rate.decay_steps = 5;
    EXPECT_THAT(CheckTraining(job),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the learning rate of step 9 0")));
    const bool has_alpha = schedule == Schedule::kCosineDecay;
    (has_alpha ? job.learning_rate.alpha : job.learning_rate.minimum) = 0.001;
    EXPECT_OK(CheckTraining(job));
  }
}

TEST(TrainingChecksTest, FtrlNeedsARateAboveZeroInTheTypeOfTheVariables) {
  JobConfig job;
  job.train_steps = 10;
  job.optimizer.kind = OptimizerConfig::Kind::kFtrl;
  job.learning_rate.base = 1e-9;
  EXPECT_OK(CheckTraining(job));
  job.model.variable_type = DType::kFloat16;
  EXPECT_THAT(CheckTraining(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the learning rate of step 9 1e-09, which is "
                                 "0 in updates of float16 variables, but "
                                 "optimizer.kind is FTRL")));
}

TEST(TrainingChecksTest, NormOfTheMeanIsLimitedInStrictMode) {
  EXPECT_OK(CheckWith([](JobConfig& job) {
    job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 1};
  }));
}

JobConfig WithLocalSteps() {
  JobConfig job;
  job.train_steps = 100;
  job.local_steps = 16;
  job.local.learning_rate.base = 0.1;
  return job;
}

TEST(LocalStepsChecksTest, ScheduleCountsLocalSteps) {
  JobConfig job = WithLocalSteps();
  EXPECT_OK(CheckLocalSteps(job));
  EXPECT_EQ(LocalLearningRateOf(job).decay_steps, 1600);
  job.train_steps = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(LocalLearningRateOf(job).decay_steps, job.train_steps);
}

TEST(LocalStepsChecksTest, APassMayHaveOneLocalStep) {
  JobConfig job = WithLocalSteps();
  job.local_steps = 1;
  EXPECT_OK(CheckLocalSteps(job));
  EXPECT_TRUE(job.has_local_steps());
  EXPECT_FALSE(JobConfig().has_local_steps());
  job.mode = SyncMode::kCompatible;
  EXPECT_THAT(CheckLocalSteps(job), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("mode is COMPATIBLE")));
}

TEST(LocalStepsChecksTest, ImpossibleValueIsRefusedWithFieldAndFix) {
  const auto refused = [](const std::function<void(JobConfig&)>& change) {
    JobConfig job = WithLocalSteps();
    change(job);
    return CheckLocalSteps(job);
  };
  const auto names = [](const char* field, const char* fix) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr(field), HasSubstr(fix)));
  };
  EXPECT_THAT(refused([](JobConfig& job) { job.local_steps = 0; }),
              names("local_steps is 0", "from 1"));
  EXPECT_THAT(refused([](JobConfig& job) { job.local_steps = 65537; }),
              names("local_steps is 65537", "65536"));
  EXPECT_THAT(refused([](JobConfig& job) { job.local.learning_rate.base = 0; }),
              names("local.learning_rate is not set", "local_steps is 16"));
  EXPECT_THAT(refused([](JobConfig& job) { job.local.optimizer.beta1 = 2; }),
              names("local", "beta1"));
  EXPECT_THAT(refused([](JobConfig& job) {
                job.local_steps = 1;
                job.local.learning_rate.base = 0;
                job.local.optimizer.kind = OptimizerConfig::Kind::kAdam;
              }),
              names("local.learning_rate is not set", "local.optimizer is"));
  EXPECT_THAT(
      refused([](JobConfig& job) { job.local.learning_rate.base = -1; }),
      names("local", "learning_rate is -1"));
  EXPECT_THAT(refused([](JobConfig& job) { job.local_steps = -3; }),
              names("local_steps is -3", "from 1"));
  EXPECT_THAT(refused([](JobConfig& job) { job.mode = SyncMode::kCompatible; }),
              names("mode is COMPATIBLE", "leave local_steps out"));
  EXPECT_THAT(refused([](JobConfig& job) { job.work = Work::kShared; }),
              names("work is SHARED", "leave one of the two out"));
  EXPECT_THAT(refused([](JobConfig& job) { job.model.kind = kExternalModel; }),
              names("model.kind is external", "push the values before"));
  EXPECT_THAT(
      refused([](JobConfig& job) { job.data.train_files = {"f"}; }),
      names("data.train_files is f", "leave local_steps and local out"));
  EXPECT_THAT(refused([](JobConfig& job) {
                job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 1};
              }),
              names("MEAN_GLOBAL_NORM", "GLOBAL_NORM"));
}

}  // namespace
}  // namespace lockstep
