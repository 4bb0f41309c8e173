#include "worker/models/zoo/mlp.h"

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
    .height = 3, .width = 2, .channels = 1, .classes = 3};

TEST(MlpModelTest, HasALayerPerHiddenSizeThenTheLogits) {
  const auto model = MakeMlp(Config("mlp", {7, 5}), kInput, kFloat);

  ASSERT_OK(model);
  EXPECT_THAT(Signatures(**model),
              ElementsAre("hidden1/weights[6,7]", "hidden1/bias[7]",
                          "hidden2/weights[7,5]", "hidden2/bias[5]",
                          "logits/weights[5,3]", "logits/bias[3]"));
}

TEST(MlpModelTest, WeightsStartScaledToTheirFanIn) {
  const auto model = MakeMlp(Config("mlp", {7}), kInput, kFloat);

  ASSERT_OK(model);
  EXPECT_EQ((*model)->variables()[0].initializer.kind,
            Initializer::Kind::kHeNormal);
  EXPECT_EQ((*model)->variables()[2].initializer.kind,
            Initializer::Kind::kGlorotUniform);
}

TEST(MlpModelTest, GradientsAreTheDerivatives) {
  for (const std::vector<int64_t>& hidden :
       {std::vector<int64_t>{1}, {11}, {7, 5}, {3, 2, 4}}) {
    ModelHarness harness(
        *MakeMlp(Config("mlp", hidden), kInput, ElementType::kFloat64), kInput,
        5);

    harness.ExpectTrueGradients();
  }
}

TEST(MlpModelTest, BadConfigurationNamesTheField) {
  EXPECT_THAT(MakeMlp({}, kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.hidden_units must have at")));
  EXPECT_THAT(MakeMlp(Config("mlp", {7, 0}), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("model.hidden_units must be in")));
  EXPECT_THAT(MakeMlp(Config("mlp", {1 << 20, 1 << 20}), kInput, kFloat),
              StatusIs(kInvalid, HasSubstr("hidden2/weights would be")));
  EXPECT_THAT(
      MakeMlp(Config("mlp", {7}, {3}), kInput, kFloat),
      StatusIs(kInvalid, HasSubstr("model.conv_filters must be left out")));
}

}  // namespace
}  // namespace lockstep::worker
