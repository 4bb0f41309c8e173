#include "server/optimizer/slots.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
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

TEST(SlotsTest, NoOptimizerExceedsTheMaximum) {
  for (const auto kind :
       {OptimizerConfig::Kind::kGradientDescent,
        OptimizerConfig::Kind::kMomentum, OptimizerConfig::Kind::kAdam}) {
    EXPECT_LE(NumSlots(Config(kind)), kMaxSlots);
  }
}

TEST(SlotsTest, VariableNameComesFirst) {
  EXPECT_EQ(SlotVariableName("hidden1/weights", "Adam_1"),
            "hidden1/weights/Adam_1");
}

}  // namespace
}  // namespace lockstep
