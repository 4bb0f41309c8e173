#include "worker/models/text_sampler.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(DrawClassTest, TemperatureZeroTakesTheFirstOfTheLikeliest) {
  EXPECT_EQ(DrawClass({1, 3, 3, 2}, 0, 0.99), 1);
}

TEST(DrawClassTest, NumbersPickInProportionToTheWeights) {
  const std::vector<float> logits = {0, std::log(3.0f)};  // a quarter, the rest

  EXPECT_EQ(DrawClass(logits, 1, 0.24), 0);
  EXPECT_EQ(DrawClass(logits, 1, 0.26), 1);
  EXPECT_EQ(DrawClass(logits, 1, 0.9999999), 1);
}

TEST(DrawClassTest, HighTemperatureMakesAllAlike) {
  EXPECT_EQ(DrawClass({0, 5}, 1e6, 0.49), 0);
}

TEST(DrawClassTest, NanIsNotPickedBesideANumber) {
  EXPECT_EQ(DrawClass({kNan, 1, kNan}, 1, 0.0), 1);
  EXPECT_EQ(DrawClass({kNan, 1, kInfinity}, 1, 0.0), 2);
  EXPECT_EQ(DrawClass({kNan, kNan}, 1, 0.5), 0);
}

// A language model whose variables are all zero but the last shifts, by which
// it expects one byte after another alike.
class TextSamplerTest : public ::testing::Test {
 protected:
  static constexpr ModelInput kInput = {1, 1, 1, 256, 4};

  TextSamplerTest() {
    ModelConfig config;
    config.kind = "transformer";
    config.layers = config.heads = 1;
    config.width = 2;
    model_ = *MakeModel(config, kInput);
    for (const VariableSpec& variable : model_->variables()) {
      const Shape shape(variable.shape.begin(), variable.shape.end());
      values_.emplace_back(*CountElements(shape));
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const VariableSpec& variable = model_->variables()[i];
      views_.push_back(ConstTensor::Of<float>(
          values_[i], Shape(variable.shape.begin(), variable.shape.end())));
    }
  }

  std::string Write(double temperature, uint64_t key, int bytes) {
    TextSampler sampler(
        *model_, *backend_, views_,
        {.window = kInput.tokens, .temperature = temperature, .key = key});
    std::string text = "longer than the window";
    for (int i = 0; i < bytes; ++i) EXPECT_OK(sampler.Extend(text));
    return text;
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  std::vector<std::vector<float>> values_;
  std::vector<ConstTensor> views_;
};

TEST_F(TextSamplerTest, LikeliestByteIsAppended) {
  values_.back()['x'] = 1;

  EXPECT_EQ(Write(0, 1, 3), "longer than the windowxxx");
}

TEST_F(TextSamplerTest, EqualKeysWriteEqualTexts) {
  EXPECT_EQ(Write(1, 1, 8), Write(1, 1, 8));
  EXPECT_NE(Write(1, 1, 8), Write(1, 2, 8));
}

TEST_F(TextSamplerTest, NothingFollowsNothing) {
  TextSampler sampler(*model_, *backend_, views_, {.window = kInput.tokens});
  std::string text;

  EXPECT_THAT(sampler.Extend(text),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::worker
