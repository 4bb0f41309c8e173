#include "server/update/slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OptimizerConfig Config(OptimizerConfig::Kind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

TEST(SlotsTest, GradientDescentHasNone) {
  const OptimizerConfig config =
      Config(OptimizerConfig::Kind::kGradientDescent);

  EXPECT_EQ(NumSlots(config), 0u);
  EXPECT_THAT(SlotNames(config), IsEmpty());
}

TEST(SlotsTest, MomentumHasOne) {
  const OptimizerConfig config = Config(OptimizerConfig::Kind::kMomentum);

  EXPECT_EQ(NumSlots(config), 1u);
  EXPECT_THAT(SlotNames(config), ElementsAre("Momentum"));
}

TEST(SlotsTest, AdamHasItsTwoMomentsInOrder) {
  const OptimizerConfig config = Config(OptimizerConfig::Kind::kAdam);

  EXPECT_EQ(NumSlots(config), 2u);
  EXPECT_THAT(SlotNames(config), ElementsAre("Adam", "Adam_1"));
}

TEST(SlotsTest, AccumulatorsStartAtTheirInitialValue) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kAdagrad);
  config.initial_accumulator_value = 0.5;
  EXPECT_THAT(Slots(config),
              ElementsAre(SlotSpec{"accumulator", "Adagrad", 0.5}));
  config.kind = OptimizerConfig::Kind::kFtrl;
  EXPECT_THAT(Slots(config), ElementsAre(SlotSpec{"accum", "Ftrl", 0.5},
                                         SlotSpec{"linear", "Ftrl_1", 0}));
}

TEST(SlotsTest, RmsPropStartsAtOneAndNumbersItsSlotsInOrder) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kRmsProp);
  EXPECT_THAT(Slots(config), ElementsAre(SlotSpec{"rms", "RMSProp", 1},
                                         SlotSpec{"momentum", "RMSProp_1", 0}));
  config.centered = true;
  EXPECT_THAT(Slots(config), ElementsAre(SlotSpec{"rms", "RMSProp", 1},
                                         SlotSpec{"mg", "RMSProp_1", 0},
                                         SlotSpec{"momentum", "RMSProp_2", 0}));
}

TEST(SlotsTest, RulesOfPyTorchHavePyTorchsNames) {
  OptimizerConfig sgd = Config(OptimizerConfig::Kind::kSgd);
  sgd.momentum = 0;
  EXPECT_THAT(SlotNames(sgd), IsEmpty());
  sgd.momentum = 0.9;
  EXPECT_THAT(SlotNames(sgd), ElementsAre("momentum_buffer"));
  EXPECT_THAT(SlotNames(Config(OptimizerConfig::Kind::kAdamTorch)),
              ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(SlotNames(Config(OptimizerConfig::Kind::kAdamW)),
              ElementsAre("exp_avg", "exp_avg_sq"));
}

TEST(SlotsTest, UpdatesAreCountedWhereTheyMatter) {
  EXPECT_FALSE(CountsUpdates(Config(OptimizerConfig::Kind::kAdam)));
  EXPECT_TRUE(CountsUpdates(Config(OptimizerConfig::Kind::kAdamTorch)));
  EXPECT_TRUE(CountsUpdates(Config(OptimizerConfig::Kind::kAdamW)));
  OptimizerConfig sgd = Config(OptimizerConfig::Kind::kSgd);
  sgd.momentum = 0.9;
  EXPECT_FALSE(CountsUpdates(sgd));
  sgd.dampening = 0.1;
  EXPECT_TRUE(CountsUpdates(sgd));
}

TEST(SlotsTest, RegularisedRulesHaveTensorFlowsNames) {
  OptimizerConfig config = Config(OptimizerConfig::Kind::kAdagradDa);
  config.initial_accumulator_value = 0.5;
  EXPECT_THAT(Slots(config),
              ElementsAre(SlotSpec{"gradient_accumulator", "AdagradDA", 0},
                          SlotSpec{"gradient_squared_accumulator",
                                   "AdagradDA_1", 0.5}));
  config.kind = OptimizerConfig::Kind::kProximalAdagrad;
  EXPECT_THAT(Slots(config),
              ElementsAre(SlotSpec{"accumulator", "ProximalAdagrad", 0.5}));
  config.kind = OptimizerConfig::Kind::kProximalGradientDescent;
  EXPECT_THAT(Slots(config), IsEmpty());
}

TEST(SlotsTest, NoOptimizerExceedsTheMaximum) {
  constexpr auto kLast = OptimizerConfig::Kind::kProximalGradientDescent;
  for (int kind = 0; kind <= static_cast<int>(kLast); ++kind) {
    OptimizerConfig config = Config(static_cast<OptimizerConfig::Kind>(kind));
    config.centered = true;
    EXPECT_LE(NumSlots(config), kMaxSlots);
  }
}

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

TEST(SlotsTest, ElementsAreFilledInTheirOwnType) {
  std::vector<std::byte> bytes(8);
  FillElements(DType::kFloat16, 0.1, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes[0], std::byte{0x66});
  EXPECT_EQ(bytes[7], std::byte{0x2e});
  // Rounded once: the nearest float32 is in the middle of two bfloat16.
  FillElements(DType::kBFloat16, 1 + 0x1p-8 + 0x1p-40, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes[0], std::byte{0x81});
  EXPECT_EQ(bytes[7], std::byte{0x3f});
  FillElements(DType::kFloat64, 1, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes[7], std::byte{0x3f});
}

}  // namespace
}  // namespace lockstep::server
