#include "worker/models/zoo/softmax.h"

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
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr ModelInput kInput = {
    .height = 3, .width = 5, .channels = 2, .classes = 4};

TEST(SoftmaxModelTest, HasOneLayerThatStartsAtZero) {
  const auto model = MakeSoftmax({}, kInput, ElementType::kFloat32);

  ASSERT_OK(model);
  EXPECT_THAT(Signatures(**model),
              ElementsAre("softmax/weights[30,4]", "softmax/bias[4]"));
  EXPECT_THAT((*model)->variables(),
              Each(Field(&VariableSpec::initializer, Initializer{})));
}

TEST(SoftmaxModelTest, GradientsAreTheDerivatives) {
  ModelHarness harness(*MakeSoftmax({}, kInput, ElementType::kFloat64), kInput,
                       5);

  harness.ExpectTrueGradients();
}

TEST(SoftmaxModelTest, FieldsOfOtherKindsAreRefused) {
  EXPECT_THAT(
      MakeSoftmax(Config("softmax", {5}), kInput, ElementType::kFloat32),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("model.hidden_units must be left out")));
  EXPECT_THAT(
      MakeSoftmax(Config("softmax", {}, {5}), kInput, ElementType::kFloat32),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("model.conv_filters must be left out")));
}

}  // namespace
}  // namespace lockstep::worker
