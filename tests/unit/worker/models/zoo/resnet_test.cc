#include "worker/models/zoo/resnet.h"

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

constexpr ModelInput kInput = {
    .height = 5, .width = 3, .channels = 2, .classes = 3};

ModelConfig Small() {
  ModelConfig config = Config("resnet", {}, {2, 3});
  config.layers = 1;
  return config;
}

TEST(ResnetModelTest, ShortcutsAreConvolutionsWhereTheShapeChanges) {
  const auto model = MakeResnet(Small(), kInput, ElementType::kFloat32);

  ASSERT_OK(model);
  std::vector<std::string> filters;
  for (const std::string& signature : Signatures(**model)) {
    if (signature.find("filters") != std::string::npos) {
      filters.push_back(signature);
    }
  }
  EXPECT_THAT(filters, ElementsAre("conv/filters[3,3,2,2]",
                                   "stage1/block1/conv1/filters[3,3,2,2]",
                                   "stage1/block1/conv2/filters[3,3,2,2]",
                                   "stage2/block1/conv1/filters[3,3,2,3]",
                                   "stage2/block1/conv2/filters[3,3,3,3]",
                                   "stage2/block1/shortcut/filters[1,1,2,3]"));
}

TEST(ResnetModelTest, GradientsAreTheDerivatives) {
  ModelHarness harness(*MakeResnet(Small(), kInput, ElementType::kFloat64),
                       kInput, 4);

  harness.ExpectTrueGradients({"moving_mean", "moving_variance"});
}

TEST(ResnetModelTest, BlocksAreNeeded) {
  EXPECT_THAT(
      MakeResnet(Config("resnet", {}, {2}), kInput, ElementType::kFloat32),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("model.layers must be in [1, 64], got 0")));
}

}  // namespace
}  // namespace lockstep::worker
