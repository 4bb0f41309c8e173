#include "server/update/sparse_optimizer.h"

#include <cstdint>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

using Kind = OptimizerConfig::Kind;

absl::Span<std::byte> Bytes(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

// A table of one column unless a test says otherwise.
class SparseOptimizerTest : public ::testing::Test {
 protected:
  void Use(Kind kind, double rate) {
    config_.kind = kind;
    rate_ = rate;
    slots_.assign(NumSlots(config_), std::vector<float>(value_.size(), 0));
    const std::vector<SlotSpec> specs = Slots(config_);
    for (size_t i = 0; i < specs.size(); ++i) {
      FillElements(DType::kFloat32, specs[i].initial_value, Bytes(slots_[i]));
    }
    powers_ = InitialAdamPowers(config_);
  }
  SparseApplyInput Input() {
    values_shape_ = shape_;
    values_shape_[0] = static_cast<int64_t>(indices_.size());
    SparseApplyInput input;
    input.learning_rate = rate_;
    input.powers = powers_;
    input.indices = indices_;
    input.values_shape = values_shape_;
    input.values = Bytes(gradient_);
    input.shape = shape_;
    input.value = Bytes(value_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      input.slots[i] = Bytes(slots_[i]);
    }
    return input;
  }
  void Apply() {
    ASSERT_OK(SparseOptimizer(config_).Apply(Input()));
    powers_ = NextAdamPowers(config_, powers_);
  }

  OptimizerConfig config_;
  double rate_ = 1;
  AdamPowers powers_;
  std::vector<int64_t> shape_ = {2, 1};
  std::vector<int64_t> values_shape_;
  std::vector<float> value_ = {1, 2};
  std::vector<std::vector<float>> slots_;
  std::vector<int64_t> indices_ = {0};
  std::vector<float> gradient_ = {0.1f};
};

TEST_F(SparseOptimizerTest, GradientDescentMovesItsRowsAlone) {
  Use(Kind::kGradientDescent, 3);
  Apply();
  EXPECT_THAT(value_, ElementsAre(FloatEq(0.7f), 2));
}

TEST_F(SparseOptimizerTest, MomentumOfOtherRowsDoesNotDecay) {
  shape_ = {4, 2};
  value_.assign(8, 0);
  indices_ = {1};
  gradient_ = {0.1f, 0.1f};
  Use(Kind::kMomentum, 2);
  Apply();
  Apply();
  EXPECT_THAT(value_,
              ElementsAre(0, 0, FloatEq(-0.58f), FloatEq(-0.58f), 0, 0, 0, 0));
  EXPECT_FLOAT_EQ(slots_[0][2], 0.19f);
  EXPECT_EQ(slots_[0][0], 0);
}

TEST_F(SparseOptimizerTest, AdagradMovesItsRowsAlone) {
  Use(Kind::kAdagrad, 3);
  for (int i = 0; i < 3; ++i) Apply();
  EXPECT_THAT(value_, ElementsAre(FloatNear(-1.60260987f, 1e-5f), 2));
}

TEST_F(SparseOptimizerTest, RepeatedRowsCountAsTheirSum) {
  for (const Kind kind : {Kind::kAdagrad, Kind::kAdam, Kind::kLazyAdam,
                          Kind::kRmsProp, Kind::kAdadelta, Kind::kFtrl,
                          Kind::kAdagradDa, Kind::kProximalAdagrad}) {
    value_ = {1, 2};
    indices_ = {1, 1};
    gradient_ = {0.125f, 0.25f};
    Use(kind, 0.5);
    Apply();
    const std::vector<float> twice = value_;
    value_ = {1, 2};
    indices_ = {1};
    gradient_ = {0.375f};
    Use(kind, 0.5);
    Apply();
    EXPECT_EQ(twice, value_) << static_cast<int>(kind);
  }
}

TEST_F(SparseOptimizerTest, AdamMovesRowsWithoutAGradientToo) {
  Use(Kind::kAdam, 0.5);
  Apply();
  EXPECT_EQ(value_[1], 2);
  indices_ = {1};
  const float before = value_[0];
  Apply();
  EXPECT_LT(value_[0], before);
}

TEST_F(SparseOptimizerTest, RulesOfPyTorchLeaveRowsWithoutAGradientAlone) {
  for (const Kind kind : {Kind::kSgd, Kind::kAdamTorch, Kind::kAdamW}) {
    value_ = {1, 2, 3};
    shape_ = {3};
    Use(kind, 0.5);
    for (std::vector<float>& slot : slots_) slot.assign(3, 0.25f);
    indices_ = {1, 1};
    gradient_ = {0.5, 0.25};

    Apply();

    EXPECT_EQ(value_[0], 1);
    EXPECT_NE(value_[1], 2);
    EXPECT_EQ(value_[2], 3);
    for (const std::vector<float>& slot : slots_) {
      EXPECT_EQ(slot[0], 0.25f);
      EXPECT_NE(slot[1], 0.25f);
    }
  }
}

TEST_F(SparseOptimizerTest, LazyAdamLeavesThemAlone) {
  Use(Kind::kLazyAdam, 0.5);
  Apply();
  indices_ = {1};
  const float before = value_[0];
  const float m = slots_[0][0];
  Apply();
  EXPECT_EQ(value_[0], before);
  EXPECT_EQ(slots_[0][0], m);
  EXPECT_LT(value_[1], 2);
}

TEST_F(SparseOptimizerTest, DecayAheadOfTimeGivesTheSameBits) {
  Use(Kind::kAdam, 0.5);
  Apply();
  const std::vector<float> value = value_;
  const auto slots = slots_;
  Apply();
  const std::vector<float> at_once = value_;
  value_ = value;
  slots_ = slots;
  std::vector<absl::Span<std::byte>> spans = {Bytes(slots_[0]),
                                              Bytes(slots_[1])};
  ASSERT_OK(SparseOptimizer(config_).Decay(DType::kFloat32, spans));
  SparseApplyInput input = Input();
  input.powers = NextAdamPowers(config_, InitialAdamPowers(config_));
  input.decayed = true;
  ASSERT_OK(SparseOptimizer(config_).Apply(input));
  EXPECT_EQ(value_, at_once);
}

TEST_F(SparseOptimizerTest, SlotsThatAdamCannotDecayAreRefused) {
  Use(Kind::kAdam, 0.5);
  const SparseOptimizer adam(config_);
  std::vector<float> m = {1, 2, 3};
  std::vector<float> v = {4, 5, 6};
  const auto refuses = [&](absl::Span<std::byte> first,
                           absl::Span<std::byte> second) {
    const std::vector<absl::Span<std::byte>> slots = {first, second};
    EXPECT_THAT(adam.Decay(DType::kFloat32, slots),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("two slots of whole, aligned elements")));
  };
  refuses(Bytes(m), Bytes(v).subspan(4));
  refuses(Bytes(m).first(11), Bytes(v).first(11));
  refuses(Bytes(m).subspan(2, 8), Bytes(v).subspan(2, 8));
  const absl::Span<std::byte> one[] = {Bytes(m)};
  EXPECT_THAT(adam.Decay(DType::kFloat32, one),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(m, ElementsAre(1, 2, 3));
  EXPECT_THAT(v, ElementsAre(4, 5, 6));
}

TEST_F(SparseOptimizerTest, ZeroRowsAreNoGradientButForAdamsDecay) {
  Use(Kind::kAdam, 0.5);
  Apply();
  indices_.clear();
  gradient_.clear();
  const float before = value_[0];
  Apply();
  EXPECT_NE(value_[0], before);
  Use(Kind::kAdagrad, 0.5);
  const std::vector<float> value = value_;
  Apply();
  EXPECT_EQ(value_, value);
}

TEST_F(SparseOptimizerTest, RefusedGradientChangesNothing) {
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdam, Kind::kFtrl}) {
    Use(kind, 0.5);
    const std::vector<float> value = value_;
    const auto slots = slots_;
    for (const int64_t bad : {int64_t{-1}, int64_t{2}, INT64_MAX, INT64_MIN}) {
      indices_ = {0, bad};
      gradient_ = {1, 1};
      EXPECT_THAT(SparseOptimizer(config_).Apply(Input()),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("must be at least 0 and less than 2")));
    }
    indices_ = {0};
    EXPECT_THAT(
        SparseOptimizer(config_).Apply(Input()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1,1]")));
    EXPECT_EQ(value_, value);
    EXPECT_EQ(slots_, slots);
  }
}

TEST_F(SparseOptimizerTest, RowsOfAnotherWidthAreRefused) {
  Use(Kind::kGradientDescent, 0.5);
  SparseApplyInput input = Input();
  const std::vector<int64_t> wide = {1, 1, 1};
  input.values_shape = wide;
  const std::vector<float> before = value_;
  EXPECT_THAT(SparseOptimizer(config_).Apply(input),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows of shape [1,1,1] and 4 bytes")));
  input = Input();
  input.shape = {};
  EXPECT_THAT(SparseOptimizer(config_).Apply(input),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("as long as their shape")));
  EXPECT_EQ(value_, before);
}

TEST_F(SparseOptimizerTest, FtrlNeedsARateAboveZero) {
  for (const double rate : {0.0, -0.5}) {
    Use(Kind::kFtrl, rate);
    EXPECT_THAT(SparseOptimizer(config_).Apply(Input()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("learning_rate is")));
  }
}

TEST_F(SparseOptimizerTest, RateIsCheckedWithoutAGradient) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("learning_rate is 0"));
  Use(Kind::kFtrl, 0);
  const SparseOptimizer ftrl(config_);
  EXPECT_OK(ftrl.CheckRate(DType::kFloat16, 0.5));
  EXPECT_THAT(ftrl.CheckRate(DType::kFloat32, 0), refused);
  // It rounds to 0 in float16.
  EXPECT_OK(ftrl.CheckRate(DType::kFloat32, 1e-9));
  EXPECT_THAT(ftrl.CheckRate(DType::kFloat16, 1e-9), refused);
  Use(Kind::kGradientDescent, 0);
  EXPECT_OK(SparseOptimizer(config_).CheckRate(DType::kFloat32, 0));
}

// Rows of a bfloat16 table follow the rule of float32, and are rounded.
TEST_F(SparseOptimizerTest, BFloat16RowsFollowTheRuleOfFloat32Rounded) {
  const auto half = [](const std::vector<float>& floats) {
    std::vector<uint16_t> bits;
    for (const float each : floats) bits.push_back(ToBFloat16(each).bits);
    return bits;
  };
  const auto bytes = [](std::vector<uint16_t>& bits) {
    return absl::Span<std::byte>(reinterpret_cast<std::byte*>(bits.data()),
                                 bits.size() * 2);
  };
  for (const Kind kind :
       {Kind::kGradientDescent, Kind::kMomentum, Kind::kAdam, Kind::kLazyAdam,
        Kind::kAdagrad, Kind::kRmsProp, Kind::kAdadelta, Kind::kFtrl}) {
    shape_ = {3, 2};
    value_ = {1, 2, 3, 4, 5, 6};
    indices_ = {2, 0, 2};
    gradient_ = {0.125f, 0.25f, 0.5f, -1, 2, 0.75f};
    Use(kind, 0.5);
    for (std::vector<float>& slot : slots_) slot.assign(6, 0.25f);
    std::vector<uint16_t> values = half(value_);
    std::vector<uint16_t> gradient = half(gradient_);
    std::vector<std::vector<uint16_t>> slots;
    for (const std::vector<float>& slot : slots_) slots.push_back(half(slot));
    SparseApplyInput input = Input();
    input.dtype = DType::kBFloat16;
    input.values = bytes(gradient);
    input.value = bytes(values);
    for (size_t i = 0; i < slots.size(); ++i) input.slots[i] = bytes(slots[i]);
    input.decayed = true;  // else m and v would be rounded twice

    ASSERT_OK(SparseOptimizer(config_).Apply(input));
    SparseApplyInput floats = Input();
    floats.decayed = true;
    ASSERT_OK(SparseOptimizer(config_).Apply(floats));

    if (kind == Kind::kAdam) continue;  // the sweep reads rounded slots
    EXPECT_EQ(values, half(value_)) << static_cast<int>(kind);
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(slots[i], half(slots_[i])) << static_cast<int>(kind);
    }
  }
}

TEST_F(SparseOptimizerTest, AdamDecaysAndMovesAllRowsOfBFloat16) {
  Use(Kind::kAdam, 0.5);
  std::vector<uint16_t> m = {0x3f80, 0x4000};  // 1, 2
  std::vector<uint16_t> v = {0x3f80, 0x3f80};
  std::vector<uint16_t> value = {0x3f80, 0x4000};
  std::vector<uint16_t> gradient = {0};
  const auto bytes = [](std::vector<uint16_t>& bits) {
    return absl::Span<std::byte>(reinterpret_cast<std::byte*>(bits.data()),
                                 bits.size() * 2);
  };
  SparseApplyInput input = Input();
  input.dtype = DType::kBFloat16;
  input.values = bytes(gradient);
  input.value = bytes(value);
  input.slots[0] = bytes(m);
  input.slots[1] = bytes(v);
  ASSERT_OK(SparseOptimizer(config_).Apply(input));
  EXPECT_EQ(m[0], ToBFloat16(0.9f).bits);
  EXPECT_EQ(m[1], ToBFloat16(2 * 0.9f).bits);
  EXPECT_LT(ToFloat(BFloat16{value[1]}), 2);
}

}  // namespace
}  // namespace lockstep::server
