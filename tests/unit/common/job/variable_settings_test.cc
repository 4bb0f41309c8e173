#include "common/job/variable_settings.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Constraint = VariableConstraint::Kind;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

class VariableSettingsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<VariableSettings>> Settings() const {
    return SettingsOf(job_, variables_);
  }

  JobConfig job_;
  const std::vector<VariableSpec> variables_ = {
      {"wide/weights", {4}, DType::kFloat32, {}},
      {"deep/hidden1/weights", {2, 2}, DType::kFloat32, {}},
      {"bias", {1}, DType::kFloat32, {}}};
};

TEST_F(VariableSettingsTest, WithoutPatternsAllVariablesFollowTheJob) {
  const auto settings = Settings();

  ASSERT_OK(settings);
  ASSERT_EQ(settings->size(), 3u);
  for (const VariableSettings& setting : *settings) {
    EXPECT_EQ(setting.optimizer, 0);
    EXPECT_FALSE(setting.averaged);
    EXPECT_EQ(setting.constraint.kind, Constraint::kUnspecified);
  }
}

TEST_F(VariableSettingsTest, PatternsChooseByName) {
  job_.variable_optimizers = {{"deep/*", {}, {}, {}}, {"b?as", {}, {}, {}}};
  job_.moving_average = {0.9, false, {"*weights"}, true};
  job_.constraints = {{"[bw]*", Constraint::kMaxNorm, 3}};

  const auto settings = Settings();

  ASSERT_OK(settings);
  EXPECT_EQ((*settings)[0].optimizer, 0);
  EXPECT_EQ((*settings)[1].optimizer, 1);
  EXPECT_EQ((*settings)[2].optimizer, 2);
  EXPECT_TRUE((*settings)[0].averaged);
  EXPECT_TRUE((*settings)[1].averaged);
  EXPECT_FALSE((*settings)[2].averaged);
  EXPECT_EQ((*settings)[0].constraint.max_norm, 3);
  EXPECT_EQ((*settings)[1].constraint.kind, Constraint::kUnspecified);
}

// The types of a program's variables are not in the job.
TEST_F(VariableSettingsTest, NumbersThatAVariablesTypeDoesNotHoldAreRefused) {
  std::vector<VariableSpec> variables = variables_;
  variables[1].dtype = DType::kFloat16;
  job_.optimizer.kind = OptimizerConfig::Kind::kAdam;
  ASSERT_OK(Settings());
  EXPECT_THAT(
      SettingsOf(job_, variables),
      StatusIs(kInvalid,
               AllOf(HasSubstr("variable \"deep/hidden1/weights\" is float16"),
                     HasSubstr("optimizer.epsilon is 1e-08"))));

  job_.variable_optimizers = {{"deep/*", OptimizerConfig(), {}, {}}};
  EXPECT_OK(SettingsOf(job_, variables));

  job_.variable_optimizers[0].optimizer.emplace().kind =
      OptimizerConfig::Kind::kFtrl;
  EXPECT_OK(SettingsOf(job_, variables));
  job_.variable_optimizers[0].learning_rate = 1e-8;
  ASSERT_OK(Settings());
  EXPECT_THAT(SettingsOf(job_, variables),
              StatusIs(kInvalid, AllOf(HasSubstr("is float16, and the learning "
                                                 "rate of step"),
                                       HasSubstr("FTRL"))));
  job_.variable_optimizers = {{"deep/*", OptimizerConfig(), {}, {}}};

  job_.clipping = {ClippingConfig::Kind::kGlobalNorm, 1e-9};
  ASSERT_OK(Settings());
  EXPECT_THAT(SettingsOf(job_, variables),
              StatusIs(kInvalid, AllOf(HasSubstr("is float16, and"),
                                       HasSubstr("clipping.limit is 1e-09"))));
}

TEST_F(VariableSettingsTest, AveragesAreOfAllVariablesUnlessPatternsSayWhich) {
  job_.moving_average.decay = 0.5;

  const auto settings = Settings();

  ASSERT_OK(settings);
  for (const VariableSettings& setting : *settings) {
    EXPECT_TRUE(setting.averaged);
  }
}

TEST_F(VariableSettingsTest, BuffersFollowTheirOwnRuleAndMatchNoPattern) {
  std::vector<VariableSpec> variables = variables_;
  variables.push_back({.name = "deep/mean", .shape = {2}, .buffer = true});
  job_.moving_average.decay = 0.9;
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.variable_optimizers.push_back({.variables = "deep/*"});
  job_.constraints.push_back(
      {.variables = "*", .kind = Constraint::kNonNegative});

  const auto settings = SettingsOf(job_, variables);
  ASSERT_OK(settings);
  EXPECT_EQ((*settings)[3].optimizer, 2);
  EXPECT_FALSE((*settings)[3].averaged);
  EXPECT_FALSE((*settings)[3].decays);
  EXPECT_EQ((*settings)[3].constraint.kind, Constraint::kUnspecified);
  EXPECT_EQ((*settings)[1].optimizer, 1);
  EXPECT_TRUE((*settings)[1].averaged);
  ASSERT_EQ(OptimizersOf(job_, variables).size(), 3u);
  EXPECT_EQ(OptimizersOf(job_, variables)[2].kind,
            OptimizerConfig::Kind::kGradientDescent);
  EXPECT_EQ(OptimizersOf(job_, variables_).size(), 2u);

  job_.variable_optimizers[0].variables = "deep/mean";
  EXPECT_THAT(SettingsOf(job_, variables),
              StatusIs(kInvalid, HasSubstr("matches no variable")));
}

TEST_F(VariableSettingsTest, UntrainedVariablesHaveNoRuleAndMatchNoPattern) {
  job_.untrained = {"deep/*"};
  job_.moving_average.decay = 0.9;
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay = 0.01;
  job_.constraints.push_back(
      {.variables = "*", .kind = Constraint::kNonNegative});

  const auto settings = Settings();

  ASSERT_OK(settings);
  EXPECT_TRUE((*settings)[0].trained);
  EXPECT_TRUE((*settings)[0].averaged);
  EXPECT_FALSE((*settings)[1].trained);
  EXPECT_EQ((*settings)[1].optimizer, 1);
  EXPECT_FALSE((*settings)[1].averaged);
  EXPECT_FALSE((*settings)[1].decays);
  EXPECT_EQ((*settings)[1].constraint.kind, Constraint::kUnspecified);
  ASSERT_EQ(OptimizersOf(job_, variables_).size(), 2u);
  EXPECT_EQ(OptimizersOf(job_, variables_)[1].kind,
            OptimizerConfig::Kind::kGradientDescent);

  job_.variable_optimizers = {{"deep/hidden1/weights", {}, {}, {}}};
  EXPECT_THAT(
      Settings(),
      StatusIs(kInvalid, HasSubstr("matches no variable that is trained")));
}

TEST_F(VariableSettingsTest, OneVariableMustBeTrained) {
  job_.untrained = {"*s", "b*"};
  EXPECT_THAT(Settings(), StatusIs(kInvalid, HasSubstr("untrained matches all "
                                                       "3 variables")));
  job_.untrained = {"*s", "c*"};
  EXPECT_THAT(Settings(),
              StatusIs(kInvalid, HasSubstr("untrained[1] is \"c*\"")));
}

TEST_F(VariableSettingsTest, BuffersNeedOneOfTheOptimizersThatThereCanBe) {
  std::vector<VariableSpec> variables = {
      {.name = "mean", .shape = {2}, .buffer = true}};
  for (size_t i = 0; i + 1 < kMaxOptimizers; ++i) {
    variables.push_back({.name = std::to_string(i), .shape = {2}});
    job_.variable_optimizers.push_back({.variables = std::to_string(i)});
  }
  EXPECT_THAT(SettingsOf(job_, variables),
              StatusIs(kInvalid, HasSubstr("there can be 6 at most")));
  job_.variable_optimizers.pop_back();
  EXPECT_OK(SettingsOf(job_, variables));
}

TEST_F(VariableSettingsTest, PatternThatMatchesNothingIsRefusedWithItsField) {
  JobConfig optimizers;
  optimizers.variable_optimizers = {{"dep/*", {}, {}, {}}};
  JobConfig averages;
  averages.moving_average = {0.9, false, {"bias", "x"}, true};
  JobConfig constraints;
  constraints.constraints = {{"y", Constraint::kNonNegative, 0}};

  EXPECT_THAT(SettingsOf(optimizers, variables_),
              StatusIs(kInvalid, HasSubstr("variable_optimizers[0].variables "
                                           "is \"dep/*\"")));
  EXPECT_THAT(
      SettingsOf(averages, variables_),
      StatusIs(kInvalid, HasSubstr("moving_average.variables[1] is \"x\"")));
  EXPECT_THAT(
      SettingsOf(constraints, variables_),
      StatusIs(kInvalid, HasSubstr("constraints[0].variables is \"y\"")));
}

TEST_F(VariableSettingsTest, TwoPatternsForOneVariableAreRefusedWithItsName) {
  JobConfig optimizers;
  optimizers.variable_optimizers = {{"deep/*", {}, {}, {}},
                                    {"*/weights", {}, {}, {}}};
  JobConfig constraints;
  constraints.constraints = {{"*", Constraint::kNonNegative, 0},
                             {"bias", Constraint::kMaxNorm, 1}};

  EXPECT_THAT(SettingsOf(optimizers, variables_),
              StatusIs(kInvalid, AllOf(HasSubstr("[0] and [1]"),
                                       HasSubstr("deep/hidden1/weights"))));
  EXPECT_THAT(SettingsOf(constraints, variables_),
              StatusIs(kInvalid, AllOf(HasSubstr("constraints[0] and [1]"),
                                       HasSubstr("\"bias\""))));
}

TEST_F(VariableSettingsTest, ExemptVariablesHaveNoWeightDecay) {
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay = 0.01;
  job_.optimizer.weight_decay_exempt = {"b?as", "wide/*"};

  const auto settings = Settings();

  ASSERT_OK(settings);
  EXPECT_FALSE((*settings)[0].decays);
  EXPECT_TRUE((*settings)[1].decays);
  EXPECT_FALSE((*settings)[2].decays);
}

TEST_F(VariableSettingsTest, ExemptPatternsAreOfTheirOwnOptimizer) {
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay = 0.01;
  VariableOptimizer wide = {"wide/*", job_.optimizer, {}, {}};
  wide.optimizer->weight_decay_exempt = {"*weights"};
  job_.variable_optimizers = {wide};

  const auto settings = Settings();

  ASSERT_OK(settings);
  EXPECT_FALSE((*settings)[0].decays);
  EXPECT_TRUE((*settings)[1].decays);
  job_.optimizer.weight_decay_exempt = {"wide/*"};
  EXPECT_THAT(
      Settings(),
      StatusIs(kInvalid,
               HasSubstr("optimizer.weight_decay_exempt is \"wide/*\", which "
                         "matches only variables of other optimizers")));
  job_.optimizer.weight_decay_exempt = {"norm"};
  EXPECT_THAT(Settings(),
              StatusIs(kInvalid, HasSubstr("which matches no variable")));
}

// As for an embedding that learns at a rate of its own.
TEST_F(VariableSettingsTest, ExemptPatternsAlsoCoverVariablesOfTheSameRule) {
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay = 0.01;
  job_.variable_optimizers = {{"wide/*", {}, 0.5, {}}};
  // Matches variables of the first rule alone, then of the second one alone.
  for (const auto& [pattern, decays] :
       {std::pair{"bias", std::vector<bool>{true, true, false}},
        std::pair{"wide/*", std::vector<bool>{false, true, true}}}) {
    job_.optimizer.weight_decay_exempt = {pattern};
    const auto settings = Settings();
    ASSERT_OK(settings);
    for (size_t i = 0; i < decays.size(); ++i) {
      EXPECT_EQ((*settings)[i].decays, decays[i]) << pattern << " " << i;
    }
    EXPECT_EQ((*settings)[0].optimizer, 1);
  }
}

TEST_F(VariableSettingsTest, ServersApplyTheRuleOfTheJobToChangesOfLocalSteps) {
  job_.local_steps = 4;
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay_exempt = {"wide/*"};
  VariableOptimizer own = {"wide/*", job_.optimizer, 0.5, {}};
  own.optimizer->weight_decay_exempt = {"wide/w*"};
  job_.variable_optimizers = {own, {"bias", {}, 0.5, {}}};

  const auto settings = Settings();

  ASSERT_OK(settings);
  for (const VariableSettings& setting : *settings) {
    EXPECT_EQ(setting.optimizer, 0);
  }
  EXPECT_FALSE((*settings)[0].decays);
  EXPECT_TRUE((*settings)[1].decays);
  EXPECT_TRUE((*settings)[2].decays);
  // Buffers keep the rule behind all others.
  auto variables = variables_;
  variables.push_back({.name = "mean", .shape = {1}, .buffer = true});
  const auto with_buffer = SettingsOf(job_, variables);
  ASSERT_OK(with_buffer);
  EXPECT_EQ(with_buffer->back().optimizer, 3);
  // Patterns are checked all the same.
  job_.variable_optimizers[1].variables = "none";
  EXPECT_THAT(Settings(), StatusIs(kInvalid, HasSubstr("\"none\"")));
}

TEST_F(VariableSettingsTest, TablesHaveNoWeightDecayAndNoDampening) {
  const std::vector<VariableSpec> variables = {
      {"t", {9, 2}, DType::kFloat32, {}, RowCut::kMod},
      {"bias", {1}, DType::kFloat32, {}}};
  job_.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  job_.optimizer.weight_decay = 0.01;
  EXPECT_THAT(
      SettingsOf(job_, variables),
      StatusIs(kInvalid, AllOf(HasSubstr("weight_decay is 0.01"),
                               HasSubstr("\"t\" is a table"),
                               HasSubstr("optimizer.weight_decay_exempt"))));
  job_.optimizer.weight_decay_exempt = {"t"};
  EXPECT_OK(SettingsOf(job_, variables));

  job_.optimizer = {};
  job_.optimizer.kind = OptimizerConfig::Kind::kSgd;
  job_.optimizer.momentum = 0.9;
  EXPECT_OK(SettingsOf(job_, variables));
  job_.optimizer.dampening = 0.5;
  EXPECT_THAT(SettingsOf(job_, variables),
              StatusIs(kInvalid, HasSubstr("optimizer.dampening is 0.5")));
}

// The rule of such a table is behind the job's own ones.
TEST_F(VariableSettingsTest, UntrainedTablesBreakNoRuleOfTheJobs) {
  job_.untrained = {"t"};
  job_.optimizer.kind = OptimizerConfig::Kind::kSgd;
  job_.optimizer.momentum = 0.9;
  job_.optimizer.dampening = 0.5;
  job_.optimizer.weight_decay = 0.01;
  for (const RowCut cut : {RowCut::kMod, RowCut::kKey}) {
    const std::vector<VariableSpec> variables = {
        {"t", {9, 2}, DType::kFloat32, {}, cut},
        {"bias", {1}, DType::kFloat32, {}}};
    for (size_t others = kMaxOptimizers - 1; others-- > 0;) {
      JobConfig job = job_;
      std::vector<VariableSpec> all = variables;
      for (size_t i = 0; i < others; ++i) {
        all.push_back({.name = absl::StrCat("v", i), .shape = {2}});
        job.variable_optimizers.push_back(
            {.variables = all.back().name, .optimizer = job.optimizer});
      }
      const auto settings = SettingsOf(job, all);
      ASSERT_OK(settings);
      EXPECT_EQ((*settings)[0].optimizer, static_cast<int>(others) + 1);
    }
  }
}

TEST_F(VariableSettingsTest, TablesHaveNoConstraints) {
  std::vector<VariableSpec> variables = variables_;
  variables.push_back({"t", {4, 2}, DType::kFloat32, {}, RowCut::kMod});
  job_.constraints = {{"bias", Constraint::kNonNegative, 0},
                      {"t*", Constraint::kMaxNorm, 1}};

  EXPECT_THAT(
      SettingsOf(job_, variables),
      StatusIs(kInvalid, AllOf(HasSubstr("constraints[1].variables is \"t*\""),
                               HasSubstr("\"t\", a table"))));

  variables.back().row_cut = RowCut::kNone;
  EXPECT_OK(SettingsOf(job_, variables));
}

TEST_F(VariableSettingsTest, NameOfATensorBeginsWithItsVariable) {
  EXPECT_EQ(TensorNameOf("hidden1/weights", "Adam_1"),
            "hidden1/weights/Adam_1");
}

TEST_F(VariableSettingsTest, NameThatCheckpointsGiveToAnotherTensorIsRefused) {
  const auto with = [](const char* name, RowCut cut, const char* other) {
    return std::vector<VariableSpec>{{name, {9, 2}, DType::kFloat32, {}, cut},
                                     {other, {1}, DType::kFloat32, {}}};
  };
  EXPECT_THAT(
      SettingsOf(job_, with("t", RowCut::kKey, "t/keys")),
      StatusIs(kInvalid, AllOf(HasSubstr("variable \"t/keys\""),
                               HasSubstr("the keys of table \"t\"; give it"))));
  EXPECT_OK(SettingsOf(job_, with("t", RowCut::kKey, "t/key")));
  EXPECT_OK(SettingsOf(job_, with("t", RowCut::kMod, "t/keys")));
  const auto average = with("w", RowCut::kNone, "w/ExponentialMovingAverage");
  EXPECT_OK(SettingsOf(job_, average));
  job_.moving_average = {0.9, false, {"w"}, true};
  EXPECT_THAT(
      SettingsOf(job_, average),
      StatusIs(kInvalid, HasSubstr("the moving average of variable \"w\"")));
}

TEST_F(VariableSettingsTest, UpdateOfEveryRowOfAGrowingTableIsRefused) {
  const std::vector<VariableSpec> variables = {
      {"t", {9, 2}, DType::kFloat32, {}, RowCut::kKey},
      {"bias", {1}, DType::kFloat32, {}}};
  const auto refused = [&](const JobConfig& job, const char* why) {
    EXPECT_THAT(
        SettingsOf(job, variables),
        StatusIs(kInvalid, AllOf(HasSubstr("\"t\" grows"), HasSubstr(why),
                                 HasSubstr("leave out model.row_limit"))));
  };
  EXPECT_OK(SettingsOf(job_, variables));
  JobConfig adam = job_;
  adam.optimizer.kind = OptimizerConfig::Kind::kAdam;
  refused(adam, "LAZY_ADAM");
  adam.variable_optimizers = {{"t", OptimizerConfig(), {}, {}}};
  EXPECT_OK(SettingsOf(adam, variables));
  JobConfig averaged = job_;
  averaged.moving_average = {0.9, false, {}, true};
  refused(averaged, "moving_average");
  averaged.moving_average.variables = {"bias"};
  EXPECT_OK(SettingsOf(averaged, variables));
  JobConfig compatible = job_;
  compatible.mode = SyncMode::kCompatible;
  refused(compatible, "STRICT");
  std::vector<VariableSpec> orthogonal = variables;
  orthogonal[0].initializer.kind = Initializer::Kind::kOrthogonal;
  EXPECT_THAT(SettingsOf(job_, orthogonal),
              StatusIs(kInvalid, HasSubstr("initializer")));
}

}  // namespace
}  // namespace lockstep
