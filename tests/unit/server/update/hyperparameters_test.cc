#include "server/update/hyperparameters.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

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

}  // namespace
}  // namespace lockstep::server
