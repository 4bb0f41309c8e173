#include "worker/local/local_variables.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/floats.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Floats;
using ::lockstep::testing::SetFloats;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

JobConfig Job(OptimizerConfig::Kind kind, double rate) {
  JobConfig job;
  job.train_steps = 100;
  job.local_steps = 4;
  job.local.optimizer.kind = kind;
  job.local.learning_rate.base = rate;
  job.learning_rate.base = 1;
  return job;
}

class LocalVariablesTest : public ::testing::Test {
 protected:
  void Make(const JobConfig& job, std::vector<VariableSpec> variables) {
    auto shared = ParameterMemory::Make(variables);
    ASSERT_OK(shared);
    shared_.emplace(*std::move(shared));
    auto local = LocalVariables::Make(job, variables);
    ASSERT_OK(local);
    local_.emplace(*std::move(local));
  }

  // A local step with these gradients of variable 0.
  void Step(const std::vector<float>& gradient) {
    SetFloats(local_->memory().gradient(0), gradient);
    ASSERT_OK(local_->Step());
  }

  std::vector<float> Difference(size_t variable) {
    local_->WriteDifference(variable, *shared_);
    return Floats(shared_->gradient(variable));
  }

  std::optional<ParameterMemory> shared_;
  std::optional<LocalVariables> local_;
};

TEST_F(LocalVariablesTest, TheDifferenceIsTheSumOfTheStepsOfADescent) {
  Make(Job(OptimizerConfig::Kind::kGradientDescent, 0.5), {{"w", {2}}});
  SetFloats(shared_->value(0), {1, -2});
  local_->Start(*shared_, 0);
  Step({2, 4});
  Step({1, -8});
  EXPECT_THAT(Floats(local_->memory().value(0)), ElementsAre(-0.5, 0));
  EXPECT_THAT(Difference(0), ElementsAre(1.5, -2));
  EXPECT_THAT(Floats(shared_->value(0)), ElementsAre(1, -2));
}

// Adam as its paper has it, with PyTorch's epsilon, written out in float64.
TEST_F(LocalVariablesTest, StepsOfAdamAreThoseOfItsPaper) {
  JobConfig job = Job(OptimizerConfig::Kind::kAdamTorch, 0.1);
  Make(job, {{"w", {1}}});
  SetFloats(shared_->value(0), {3});
  local_->Start(*shared_, 0);
  double w = 3;
  double m = 0;
  double v = 0;
  for (int t = 1; t <= 4; ++t) {
    const double g = 2 * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double step = 0.1 * (m / (1 - std::pow(0.9, t))) /
                        (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    Step({static_cast<float>(2 * Floats(local_->memory().value(0))[0])});
    w -= step;
  }
  EXPECT_THAT(Difference(0), ElementsAre(FloatNear(3 - w, 1e-6)));
}

TEST_F(LocalVariablesTest, EachPassBeginsAnew) {
  for (const auto kind :
       {OptimizerConfig::Kind::kAdam, OptimizerConfig::Kind::kAdamW,
        OptimizerConfig::Kind::kMomentum, OptimizerConfig::Kind::kAdagrad}) {
    Make(Job(kind, 0.1), {{"w", {2}}});
    SetFloats(shared_->value(0), {1, -2});
    local_->Start(*shared_, 7);
    Step({0.3, 0.1});
    Step({-0.2, 5});
    const std::vector<float> first = Difference(0);
    local_->Start(*shared_, 7);
    Step({0.3, 0.1});
    Step({-0.2, 5});
    EXPECT_EQ(Difference(0), first) << static_cast<int>(kind);
  }
}

TEST_F(LocalVariablesTest, OthersKeepTheirRulesInLocalSteps) {
  JobConfig job = Job(OptimizerConfig::Kind::kGradientDescent, 0.5);
  job.untrained = {"frozen"};
  job.variable_optimizers.push_back(
      {.variables = "own", .learning_rate = 0.25});
  Make(job, {{"w", {1}},
             {"own", {1}},
             {"frozen", {1}},
             {.name = "mean", .shape = {1}, .buffer = true}});
  for (size_t v = 0; v < 4; ++v) SetFloats(shared_->value(v), {8});
  local_->Start(*shared_, 0);
  for (size_t v = 0; v < 4; ++v) SetFloats(local_->memory().gradient(v), {1});
  ASSERT_OK(local_->Step());
  EXPECT_THAT(Difference(0), ElementsAre(0.5));
  EXPECT_THAT(Difference(1), ElementsAre(0.25));
  EXPECT_THAT(Difference(2), ElementsAre(0));
  EXPECT_THAT(Difference(3), ElementsAre(1));

  const auto clipped = local_->ClippedGradients();
  EXPECT_FALSE(clipped[0].empty());
  EXPECT_TRUE(clipped[2].empty());
  EXPECT_TRUE(clipped[3].empty());
}

// The servers' rule decays other variables than the local one.
TEST_F(LocalVariablesTest, WeightDecaySparesTheVariablesOfTheLocalRule) {
  JobConfig job = Job(OptimizerConfig::Kind::kSgd, 0.5);
  job.local.optimizer.weight_decay = 0.5;
  job.local.optimizer.weight_decay_exempt = {"bias"};
  job.optimizer.kind = OptimizerConfig::Kind::kSgd;
  job.optimizer.weight_decay = 0.5;
  job.optimizer.weight_decay_exempt = {"w"};
  Make(job, {{"w", {1}}, {"bias", {1}}});
  for (size_t v = 0; v < 2; ++v) SetFloats(shared_->value(v), {8});
  local_->Start(*shared_, 0);
  for (size_t v = 0; v < 2; ++v) SetFloats(local_->memory().gradient(v), {1});
  ASSERT_OK(local_->Step());
  EXPECT_THAT(Difference(0), ElementsAre(2.5));  // 0.5 * (1 + 0.5 * 8)
  EXPECT_THAT(Difference(1), ElementsAre(0.5));
}

TEST_F(LocalVariablesTest, PatternOfTheLocalRuleThatMatchesNothingIsNamed) {
  JobConfig job = Job(OptimizerConfig::Kind::kAdamW, 0.5);
  job.local.optimizer.weight_decay = 0.01;
  job.local.optimizer.weight_decay_exempt = {"none*"};
  EXPECT_THAT(
      LocalVariables::Make(job, {{"w", {1}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("local.optimizer.weight_decay_exempt is \"none*\"")));
}

TEST_F(LocalVariablesTest, TheRateCountsLocalSteps) {
  JobConfig job = Job(OptimizerConfig::Kind::kGradientDescent, 1);
  job.local.learning_rate.schedule =
      LearningRateConfig::Schedule::kPiecewiseConstant;
  job.local.learning_rate.boundaries = {8};
  job.local.learning_rate.values = {1, 0.125};
  Make(job, {{"w", {1}}});
  local_->Start(*shared_, 2);  // local steps 8 to 11
  Step({1});
  EXPECT_THAT(Difference(0), ElementsAre(1));
  Step({1});
  EXPECT_THAT(Difference(0), ElementsAre(1.125));
}

TEST_F(LocalVariablesTest, HalvesAreSubtractedInFloat32AndRoundedOnce) {
  Make(Job(OptimizerConfig::Kind::kGradientDescent, 0.5),
       {{"w", {1}, DType::kBFloat16}});
  const uint16_t three = 0x4040;
  std::memcpy(shared_->value(0).data(), &three, 2);
  local_->Start(*shared_, 0);
  const uint16_t two = 0x4000;
  std::memcpy(local_->memory().gradient(0).data(), &two, 2);
  ASSERT_OK(local_->Step());
  local_->WriteDifference(0, *shared_);
  uint16_t difference = 0;
  std::memcpy(&difference, shared_->gradient(0).data(), 2);
  EXPECT_EQ(difference, 0x3f80);  // 1
}

}  // namespace
}  // namespace lockstep::worker
