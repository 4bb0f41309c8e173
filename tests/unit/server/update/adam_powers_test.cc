#include "server/update/adam_powers.h"

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

OptimizerConfig Adam(double beta1, double beta2) {
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::kAdam;
  config.beta1 = beta1;
  config.beta2 = beta2;
  return config;
}

TEST(AdamPowersTest, FirstStepUsesTheFirstPower) {
  EXPECT_EQ(InitialAdamPowers(Adam(0.9, 0.999)), (AdamPowers{0.9f, 0.999f}));
}

TEST(AdamPowersTest, EachStepMultipliesOnceInFloat32) {
  const OptimizerConfig config = Adam(0.9, 0.9351);

  const AdamPowers second = NextAdamPowers(config, InitialAdamPowers(config));

  EXPECT_EQ(second, (AdamPowers{0.80999994f, 0.87441206f}));
}

TEST(AdamPowersTest, PowerThatWouldBeSubnormalIsZero) {
  const AdamPowers next = NextAdamPowers(Adam(0.5, 0.5), {1.2e-38f, 2.4e-38f});

  EXPECT_EQ(next.beta1_power, 0.0f);
  EXPECT_EQ(next.beta2_power, 1.2e-38f);
}

TEST(AdamPowersTest, OtherOptimizersHaveNone) {
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::kMomentum;

  EXPECT_EQ(InitialAdamPowers(config), AdamPowers{});
  EXPECT_EQ(NextAdamPowers(config, {0.5f, 0.5f}), AdamPowers{});
}

}  // namespace
}  // namespace lockstep::server
