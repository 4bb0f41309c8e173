#include "server/update/hyperparameters.h"

#include <cstdint>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

OptimizerConfig Config(OptimizerConfig::Kind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

TEST(HyperparametersTest, NumbersBecomeFloat32First) {
  const Hyperparameters hyper = MakeHyperparameters(OptimizerConfig(), 0.1, {});
  EXPECT_EQ(static_cast<double>(hyper.learning_rate), 0.10000000149011612);
  EXPECT_EQ(hyper.adam.learning_rate, hyper.learning_rate);
  EXPECT_EQ(hyper.ftrl.learning_rate, hyper.learning_rate);
}

TEST(HyperparametersTest, BetaOfFtrlActsThroughL2) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kFtrl);
  config.l2 = 0.5;
  config.beta = 2;
  EXPECT_EQ(MakeHyperparameters(config, 4, {}).ftrl.l2, 0.75f);
  EXPECT_EQ(MakeHyperparameters(config, 0, {}).ftrl.l2, 2 / 2e-36f);
}

TEST(HyperparametersTest, StepOfAdagradDaIsTheOneThatTheUpdateLeadsTo) {
  const OptimizerConfig config = Config(OptimizerConfig::Kind::kAdagradDa);
  const auto step = [&](int64_t committed) {
    return MakeHyperparameters(config, 1, {}, {.step = committed})
        .proximal.step;
  };
  EXPECT_EQ(step(0), 1);
  EXPECT_EQ(step(41), 42);
  EXPECT_EQ(step(std::numeric_limits<int64_t>::max()), 0x1p63);
}

TEST(HyperparametersTest, RefusesWhatTensorFlowRefuses) {
  for (const auto kind :
       {OptimizerConfig::Kind::kAdagrad, OptimizerConfig::Kind::kAdagradDa,
        OptimizerConfig::Kind::kProximalAdagrad}) {
    OptimizerConfig adagrad = Config(kind);
    EXPECT_OK(CheckHyperparameters(adagrad));
    adagrad.initial_accumulator_value = 0;
    EXPECT_THAT(CheckHyperparameters(adagrad),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("initial_accumulator_value is 0")))
        << static_cast<int>(kind);
  }

  const OptimizerConfig ftrl = Config(OptimizerConfig::Kind::kFtrl);
  EXPECT_OK(CheckHyperparameters(ftrl));
  struct Wrong {
    double OptimizerConfig::*field;
    double value;
    const char* name;
  };
  for (const Wrong& wrong :
       {Wrong{&OptimizerConfig::initial_accumulator_value, -0.1,
              "initial_accumulator_value is -0.1"},
        Wrong{&OptimizerConfig::l1, -1, "l1 is -1"},
        Wrong{&OptimizerConfig::l2, -1, "l2 is -1"},
        Wrong{&OptimizerConfig::l2_shrinkage, -1, "l2_shrinkage is -1"},
        Wrong{&OptimizerConfig::learning_rate_power, 0.5,
              "learning_rate_power is 0.5"}}) {
    OptimizerConfig config = ftrl;
    config.*wrong.field = wrong.value;
    EXPECT_THAT(
        CheckHyperparameters(config),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wrong.name)));
  }
}

}  // namespace
}  // namespace lockstep::server
