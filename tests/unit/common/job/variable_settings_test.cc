#include "common/job/variable_settings.h"

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

TEST_F(VariableSettingsTest, AveragesAreOfAllVariablesUnlessPatternsSayWhich) {
  job_.moving_average.decay = 0.5;

  const auto settings = Settings();

  ASSERT_OK(settings);
  for (const VariableSettings& setting : *settings) {
    EXPECT_TRUE(setting.averaged);
  }
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

TEST_F(VariableSettingsTest, NameOfATensorBeginsWithItsVariable) {
  EXPECT_EQ(TensorNameOf("hidden1/weights", "Adam_1"),
            "hidden1/weights/Adam_1");
}

}  // namespace
}  // namespace lockstep
