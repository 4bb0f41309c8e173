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

TEST(SlotsTest, NoOptimizerExceedsTheMaximum) {
  for (int kind = 0; kind <= static_cast<int>(OptimizerConfig::Kind::kLazyAdam);
       ++kind) {
    OptimizerConfig config = Config(static_cast<OptimizerConfig::Kind>(kind));
    config.centered = true;
    EXPECT_LE(NumSlots(config), kMaxSlots);
  }
}

TEST(SlotsTest, ElementsAreFilledInTheirOwnType) {
  std::vector<std::byte> bytes(8);
  FillElements(DType::kFloat16, 0.1, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes[0], std::byte{0x66});
  EXPECT_EQ(bytes[7], std::byte{0x2e});
  FillElements(DType::kFloat64, 1, absl::MakeSpan(bytes));
  EXPECT_EQ(bytes[7], std::byte{0x3f});
}

}  // namespace
}  // namespace lockstep::server
