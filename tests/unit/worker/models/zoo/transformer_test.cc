#include "worker/models/zoo/transformer.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_harness.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Config;
using ::lockstep::testing::ModelHarness;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr ElementType kDouble = ElementType::kFloat64;
constexpr ModelInput kInput = {
    .height = 1, .width = 1, .channels = 1, .classes = 5, .tokens = 3};

ModelConfig Small() {
  ModelConfig config = Config("transformer");
  config.layers = 2;
  config.heads = 2;
  config.width = 4;
  return config;
}

class TransformerTest : public ::testing::Test {
 protected:
  static ModelHarness Make(const ModelConfig& config, int64_t examples) {
    return ModelHarness(*MakeTransformer(config, kInput, kDouble), kInput,
                        examples);
  }
};

TEST_F(TransformerTest, GradientsAreTheDerivatives) {
  ModelHarness harness = Make(Small(), 2);

  harness.ExpectTrueGradients();
}

TEST_F(TransformerTest, GradientsAreTheDerivativesWithDropout) {
  ModelConfig config = Small();
  config.layers = 1;
  config.dropout = 0.3;
  ModelHarness harness = Make(config, 2);

  harness.ExpectTrueGradients();
}

TEST_F(TransformerTest, AnotherKeyDropsOthers) {
  ModelConfig config = Small();
  config.dropout = 0.5;
  ModelHarness harness = Make(config, 2);
  const double loss = harness.Pass();

  harness.set_key(2);

  EXPECT_NE(harness.Pass(), loss);
}

TEST_F(TransformerTest, EvaluationDropsNothing) {
  ModelConfig config = Small();
  ModelHarness plain = Make(config, 2);
  config.dropout = 0.5;
  ModelHarness dropping = Make(config, 2);

  const auto loss = [](ModelHarness& harness) {
    return harness.model()
        .Evaluate(harness.backend(), harness.Batch(), harness.Variables())
        ->loss_sum;
  };

  EXPECT_EQ(loss(dropping), loss(plain));
}

TEST_F(TransformerTest, NoPositionSeesWhatFollows) {
  ModelHarness harness = Make(Small(), 1);
  const auto logits = [&] {
    const auto out = harness.model().Logits(harness.backend(), harness.Batch(),
                                            harness.Variables());
    return std::vector<double>(out->data<double>(), out->data<double>() + 15);
  };
  const std::vector<double> before = logits();

  harness.tokens()[2] = (harness.tokens()[2] + 1) % 5;
  const std::vector<double> after = logits();

  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 10, after.begin()));
  EXPECT_NE(before, after);
}

TEST_F(TransformerTest, ShorterTextHasNoGradientForPositionsItLacks) {
  ModelHarness harness = Make(Small(), 1);
  BatchView batch = harness.Batch();
  batch.tokens = batch.tokens.Reshaped({1, 2});
  batch.labels = batch.labels.Reshaped({2});

  ASSERT_OK(harness.model().Gradients(harness.backend(), batch,
                                      harness.Variables(), harness.Gradients(),
                                      harness.Loss()));

  const std::vector<double>& positions = harness.gradients()[1];
  EXPECT_THAT(std::vector<double>(positions.begin() + 8, positions.end()),
              Each(0));
}

TEST_F(TransformerTest, TokensThatMayBeOutsideTheVocabularyAreRefused) {
  ModelHarness harness = Make(Small(), 1);
  BatchView batch = harness.Batch();
  batch.tokens = batch.tokens.WithBound(6);

  EXPECT_THAT(
      harness.model().Evaluate(harness.backend(), batch, harness.Variables()),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          "tokens of the batch must be known to be in [0, 5), got [0, 6)"));
}

// Its passes draw other numbers each, so that none can stand for the next.
TEST_F(TransformerTest, OnlyDropoutIsRandom) {
  ModelConfig config = Small();
  EXPECT_FALSE((*MakeTransformer(config, kInput, kDouble))->random());
  config.dropout = 0.5;
  EXPECT_TRUE((*MakeTransformer(config, kInput, kDouble))->random());
}

TEST_F(TransformerTest, WrongSettingsAreNamed) {
  ModelConfig config = Small();
  config.heads = 3;
  EXPECT_THAT(MakeTransformer(config, kInput, kDouble),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "model.width must be a multiple of model.heads, 3, got "
                       "4"));
  EXPECT_THAT(
      MakeTransformer(Config("transformer"), kInput, kDouble),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.layers")));
  ModelInput pictures = kInput;
  pictures.tokens = 0;
  EXPECT_THAT(MakeTransformer(Small(), pictures, kDouble),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set data.train_text")));
}

}  // namespace
}  // namespace lockstep::worker
