#include "server/optimizer/sparse_optimizer.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
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
                          Kind::kRmsProp, Kind::kAdadelta, Kind::kFtrl}) {
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
  EXPECT_THAT(SparseOptimizer(config_).Apply(input),
              StatusIs(absl::StatusCode::kInvalidArgument));
  input = Input();
  input.shape = {};
  EXPECT_THAT(SparseOptimizer(config_).Apply(input),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SparseOptimizerTest, FtrlNeedsARateAboveZero) {
  for (const double rate : {0.0, -0.5}) {
    Use(Kind::kFtrl, rate);
    EXPECT_THAT(SparseOptimizer(config_).Apply(Input()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("learning_rate is")));
  }
}

}  // namespace
}  // namespace lockstep
