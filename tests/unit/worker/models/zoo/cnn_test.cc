#include "worker/models/zoo/cnn.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_harness.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Config;
using ::lockstep::testing::ModelHarness;
using ::lockstep::testing::Signatures;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr ElementType kFloat = ElementType::kFloat32;
constexpr ModelInput kInput = {
    .height = 5, .width = 7, .channels = 2, .classes = 3};

TEST(CnnModelTest, EachConvolutionHalvesTheImage) {
  const auto model = MakeCnn(Config("cnn", {11}, {4, 6}, 5), kInput, kFloat);

  ASSERT_OK(model);
  EXPECT_THAT(Signatures(**model),
              ElementsAre("conv1/filters[5,5,2,4]", "conv1/bias[4]",
                          "conv2/filters[5,5,4,6]", "conv2/bias[6]",
                          "hidden1/weights[24,11]", "hidden1/bias[11]",
                          "logits/weights[11,3]", "logits/bias[3]"));
}

TEST(CnnModelTest, HiddenUnitsMayBeLeftOut) {
  const auto model = MakeCnn(Config("cnn", {}, {4}), kInput, kFloat);

  ASSERT_OK(model);
  EXPECT_THAT(Signatures(**model),
              ElementsAre("conv1/filters[3,3,2,4]", "conv1/bias[4]",
                          "logits/weights[48,3]", "logits/bias[3]"));
}

TEST(CnnModelTest, ImageSmallerThanItsPoolsIsEnough) {
  const ModelInput pixel = {
      .height = 1, .width = 1, .channels = 1, .classes = 2};

  EXPECT_OK(MakeCnn(Config("cnn", {}, {2, 2, 2}), pixel, kFloat));
}

TEST(CnnModelTest, GradientsAreTheDerivatives) {
  for (const ModelConfig& config :
       {Config("cnn", {}, {3}), Config("cnn", {5}, {2, 3}),
        Config("cnn", {}, {2}, 5)}) {
    ModelHarness harness(*MakeCnn(config, kInput, ElementType::kFloat64),
                         kInput, 3);

    harness.ExpectTrueGradients();
  }
}

TEST(CnnModelTest, BadConfigurationNamesTheField) {
  EXPECT_THAT(MakeCnn({}, kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.conv_filters must have at")));
  EXPECT_THAT(MakeCnn(Config("cnn", {}, {-1}), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.conv_filters must be in")));
  EXPECT_THAT(MakeCnn(Config("cnn", {0}, {1}), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.hidden_units must be in")));
  EXPECT_THAT(MakeCnn(Config("cnn", {}, {1}, 4), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.kernel_size must be odd")));
  EXPECT_THAT(MakeCnn(Config("cnn", {}, {1 << 20, 1 << 20}), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("conv2/filters would be")));
}

}  // namespace
}  // namespace lockstep::worker
