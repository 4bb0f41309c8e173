#include "worker/models/zoo/registry.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_harness.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Config;
using ::lockstep::testing::ModelHarness;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr ModelInput kInput = {
    .height = 4, .width = 4, .channels = 1, .classes = 4};

ModelConfig SmallConfig(const std::string& kind) {
  ModelConfig config = Config(kind);
  if (kind == "mlp" || kind == "cnn") config.hidden_units = {8};
  if (kind == "cnn" || kind == "resnet") config.conv_filters = {4};
  config.layers = 1;
  return config;
}

// All but those that read text.
std::vector<std::string> PictureKinds() {
  std::vector<std::string> kinds = ModelKinds();
  std::erase(kinds, "transformer");
  return kinds;
}

TEST(ModelRegistryTest, PictureModelsRefuseText) {
  ModelInput text = kInput;
  text.tokens = 8;
  for (const std::string& kind : PictureKinds()) {
    EXPECT_THAT(MakeModel(SmallConfig(kind), text),
                StatusIs(kInvalid, HasSubstr("needs pictures")));
  }
}

TEST(ModelRegistryTest, KindsAreListed) {
  EXPECT_THAT(ModelKinds(),
              ElementsAre("cnn", "mlp", "resnet", "softmax", "transformer"));
}

TEST(ModelRegistryTest, UnknownKindListsAllAndTheNearest) {
  EXPECT_THAT(
      MakeModel(Config("sofmax"), kInput),
      StatusIs(kInvalid,
               AllOf(HasSubstr("model.kind must be one of cnn, mlp, "
                               "resnet, softmax, transformer, got \"sofmax\""),
                     HasSubstr("did you mean softmax?"))));
}

TEST(ModelRegistryTest, KindUnlikeAnyIsNotGuessed) {
  EXPECT_THAT(MakeModel(Config("wide_and_deep"), kInput),
              StatusIs(kInvalid, Not(HasSubstr("did you mean"))));
}

TEST(ModelRegistryTest, InputAndTypeAreChecked) {
  EXPECT_THAT(MakeModel({}, {.height = 0, .width = 1, .channels = 1}),
              StatusIs(kInvalid, HasSubstr("height of the images")));
  EXPECT_THAT(MakeModel({}, kInput, ElementType::kUint8), StatusIs(kInvalid));
}

TEST(ModelRegistryTest, ModelsAreInFloatUnlessToldOtherwise) {
  const auto model = MakeModel({}, kInput);

  ASSERT_OK(model);
  EXPECT_EQ((*model)->variables()[0].dtype, DType::kFloat32);
}

class EveryModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Model> Make() {
    auto model =
        MakeModel(SmallConfig(GetParam()), kInput, ElementType::kFloat64);
    EXPECT_OK(model);
    return *std::move(model);
  }
};

TEST_P(EveryModelTest, TwoOfOneConfigHaveTheSameVariables) {
  EXPECT_EQ(Make()->variables(), Make()->variables());
}

// Four classes of images: which quarter is bright. Noise on top.
TEST_P(EveryModelTest, LearnsWhatIsSeparable) {
  ModelHarness harness(Make(), kInput, 64);
  for (int64_t i = 0; i < 64; ++i) {
    const int64_t label = harness.labels()[i];
    for (int64_t pixel = 0; pixel < 16; ++pixel) {
      const int64_t quarter = pixel / 8 * 2 + pixel % 4 / 2;
      harness.images()[i * 16 + pixel] += quarter == label ? 1 : 0;
    }
  }

  EXPECT_GE(harness.TrainAndScore(/*steps=*/200, /*learning_rate=*/0.3), 0.95);
}

TEST_P(EveryModelTest, EqualPassesGiveEqualBits) {
  ModelHarness first(Make(), kInput, 7);
  ModelHarness second(Make(), kInput, 7);

  EXPECT_EQ(first.Pass(), second.Pass());
  EXPECT_EQ(first.gradients(), second.gradients());
}

TEST_P(EveryModelTest, PassOverNoExamplesHasZeroGradients) {
  ModelHarness harness(Make(), kInput, 0);

  EXPECT_EQ(harness.Pass(), 0);

  for (const std::vector<double>& gradient : harness.gradients()) {
    EXPECT_THAT(gradient, ::testing::Each(0));
  }
}

TEST(KeptVariablesTest, NothingButTheTypeOfElementsChanges) {
  ModelConfig config;
  config.variable_type = DType::kBFloat16;
  const auto model = MakeModel(config, kInput);
  ASSERT_OK(model);

  std::vector<VariableSpec> kept = KeptVariables(**model, config);

  ASSERT_FALSE(kept.empty());
  for (VariableSpec& variable : kept) {
    EXPECT_EQ(variable.dtype, DType::kBFloat16);
    variable.dtype = DType::kFloat32;
  }
  EXPECT_EQ(kept, (*model)->variables());
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryModelTest,
                         ::testing::ValuesIn(PictureKinds()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lockstep::worker
