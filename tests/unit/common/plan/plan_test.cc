#include "common/plan/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<VariableSpec> Model() {
  return {{"hidden/weights", {4, 3}, DType::kFloat32, {}},
          {"table", {5, 2}, DType::kFloat32, {}, RowCut::kMod}};
}

Plan WholePlan() {
  return {Model(),
          {{0, 0, 6, 0, 0},
           {0, 6, 6, 1, 0},
           {1, 0, 6, 0, 1, 2},
           {1, 2, 4, 1, 1, 2}}};
}

TEST(CheckPlanTest, PlanOfTheModelPasses) {
  EXPECT_THAT(CheckPlan(WholePlan(), Model()), IsOk());
}

TEST(CheckPlanTest, PlanWithFewerVariablesIsRefused) {
  Plan plan = WholePlan();
  plan.variables.pop_back();
  plan.parts.resize(2);
  EXPECT_THAT(CheckPlan(plan, Model()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 variables, the model 2"),
                             HasSubstr("TF_CONFIG"))));
}

TEST(CheckPlanTest, FirstDifferentVariableIsNamedAsBothHaveIt) {
  Plan plan = WholePlan();
  plan.variables[0].shape = {4, 2};
  plan.variables[1].dtype = DType::kFloat64;
  EXPECT_THAT(CheckPlan(plan, Model()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("variable 0 is \"hidden/weights\" "
                                       "float32 [4,2]"),
                             HasSubstr("the model's \"hidden/weights\" "
                                       "float32 [4,3]"))));
}

TEST(CheckPlanTest, OtherInitialValuesAreAnotherModel) {
  Plan plan = WholePlan();
  plan.variables[1].initializer.a = 0.5;
  EXPECT_THAT(CheckPlan(plan, Model()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CheckPlanTest, EveryElementHasOnePlace) {
  for (const auto& [offset, count] :
       {std::pair<int64_t, int64_t>{6, 5}, {5, 6}, {7, 5}, {6, 7}, {0, 12}}) {
    Plan plan = WholePlan();
    plan.parts[1].offset = offset;
    plan.parts[1].count = count;
    EXPECT_THAT(CheckPlan(plan, Model()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("\"hidden/weights\"")));
  }
}

TEST(CheckPlanTest, ATableHasAllItsRows) {
  Plan plan = WholePlan();
  plan.parts.pop_back();
  EXPECT_THAT(
      CheckPlan(plan, Model()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("a place for 6 of the 10 elements of \"table\"")));
}

}  // namespace
}  // namespace lockstep
