#include "server/update/torch_kernels.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "common/numeric/float16.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using Kind = OptimizerConfig::Kind;

OptimizerConfig Config(Kind kind) {
  OptimizerConfig config;
  config.kind = kind;
  config.momentum = 0.5;
  config.weight_decay = 0.25;
  return config;
}

// One element with two slots, updated in place.
template <typename T>
struct Element {
  T value = {};
  T gradient = {};
  T slots[2] = {};

  UpdateBlock<T> Block() {
    UpdateBlock<T> block;
    block.count = 1;
    block.gradient = reinterpret_cast<const std::byte*>(&gradient);
    block.old_value = block.new_value = &value;
    for (size_t i = 0; i < 2; ++i) {
      block.old_slots[i] = block.new_slots[i] = &slots[i];
    }
    return block;
  }
};

TEST(TorchKernelsTest, DampeningBeginsWithTheSecondUpdate) {
  OptimizerConfig config = Config(Kind::kSgd);
  config.dampening = 0.75;
  Element<float> w{8, 2, {4}};

  // Gradient 2 + 8 / 4 = 4.
  TorchSgdKernel(w.Block(), MakeTorchSgd(config, 0.5, 0, true));
  EXPECT_EQ(w.slots[0], 6);
  EXPECT_EQ(w.value, 5);

  w = {8, 2, {4}};
  TorchSgdKernel(w.Block(), MakeTorchSgd(config, 0.5, 1, true));
  EXPECT_EQ(w.slots[0], 3);
  EXPECT_EQ(w.value, 6.5);
}

TEST(TorchKernelsTest, NesterovAddsTheBufferToTheGradient) {
  OptimizerConfig config = Config(Kind::kSgd);
  config.use_nesterov = true;
  Element<double> w{8, 2, {4}};

  TorchSgdKernel(w.Block(), MakeTorchSgd(config, 0.5, 3, true));

  EXPECT_EQ(w.slots[0], 6);
  EXPECT_EQ(w.value, 8 - 0.5 * (4 + 0.5 * 6));
}

TEST(TorchKernelsTest, ExemptVariablesDoNotDecay) {
  Element<float> w{8, 0, {}};
  TorchSgdKernel(w.Block(), MakeTorchSgd(Config(Kind::kSgd), 0.5, 0, false));
  EXPECT_EQ(w.value, 8);

  for (const Kind kind : {Kind::kAdamTorch, Kind::kAdamW}) {
    Element<float> exempt{8, 0, {}};
    TorchAdamKernel(exempt.Block(), MakeTorchAdam(Config(kind), 0.5, 0, false));
    EXPECT_EQ(exempt.value, 8);
    Element<float> decaying{8, 0, {}};
    TorchAdamKernel(decaying.Block(),
                    MakeTorchAdam(Config(kind), 0.5, 0, true));
    EXPECT_LT(decaying.value, 8);
  }
}

TEST(TorchKernelsTest, DecoupledDecayStaysOutOfTheMoments) {
  Element<float> w{8, 0, {}};

  TorchAdamKernel(w.Block(), MakeTorchAdam(Config(Kind::kAdamW), 0.5, 0, true));

  EXPECT_EQ(w.value, 8 * (1 - 0.5f * 0.25f));
  EXPECT_EQ(w.slots[0], 0);
  EXPECT_EQ(w.slots[1], 0);
}

// TensorFlow's epsilon is added before the correction, and so counts less.
TEST(TorchKernelsTest, EpsilonIsAddedAfterTheBiasCorrection) {
  OptimizerConfig config = Config(Kind::kAdamTorch);
  config.weight_decay = 0;
  config.epsilon = 1;
  Element<double> w{0, 2, {}};

  TorchAdamKernel(w.Block(), MakeTorchAdam(config, 0.5, 0, true));

  EXPECT_NEAR(w.value, -0.5 * 2 / (2 + 1), 1e-12);
}

TEST(TorchKernelsTest, BiasCorrectionsFollowTheUpdates) {
  const OptimizerConfig config = Config(Kind::kAdamTorch);

  const TorchAdam third = MakeTorchAdam(config, 0.5, 2, true);

  EXPECT_NEAR(third.step_size, 0.5 / (1 - 0.9 * 0.9 * 0.9), 1e-15);
  EXPECT_NEAR(third.root_correction, std::sqrt(1 - std::pow(0.999, 3)), 1e-15);
}

TEST(TorchKernelsTest, HalvesAreComputedInFloat32) {
  const TorchAdam adam = MakeTorchAdam(Config(Kind::kAdamW), 0.5, 0, true);
  Element<float> w{0.7f, 0.3f, {0.1f, 0.2f}};
  Element<Float16> half;
  half.value = ToFloat16(w.value);
  half.gradient = ToFloat16(w.gradient);
  for (size_t i = 0; i < 2; ++i) half.slots[i] = ToFloat16(w.slots[i]);
  w.value = ToFloat(half.value);
  w.gradient = ToFloat(half.gradient);
  for (size_t i = 0; i < 2; ++i) w.slots[i] = ToFloat(half.slots[i]);

  TorchAdamKernel(w.Block(), adam);
  TorchAdamKernel(half.Block(), adam);

  EXPECT_EQ(ToFloat(half.value), ToFloat(ToFloat16(w.value)));
  EXPECT_EQ(ToFloat(half.slots[1]), ToFloat(ToFloat16(w.slots[1])));
}

TEST(TorchKernelsTest, EachLaneSumsItsOwnElements) {
  std::vector<float> elements(19);
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>(i);
  }
  double lanes[kSquareLanes] = {100};

  AddSquaresOfFloats(elements.size(),
                     reinterpret_cast<const std::byte*>(elements.data()),
                     lanes);

  EXPECT_EQ(lanes[0], 100 + 0 + 8 * 8 + 16 * 16);
  EXPECT_EQ(lanes[2], 2 * 2 + 10 * 10 + 18 * 18);
  EXPECT_EQ(lanes[7], 7 * 7 + 15 * 15);
}

}  // namespace
}  // namespace lockstep::server
