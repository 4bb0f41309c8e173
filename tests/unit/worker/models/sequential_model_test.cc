#include "worker/models/sequential_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_harness.h"
#include "worker/models/layers/conv_layer.h"
#include "worker/models/layers/dense_layer.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ModelHarness;
using ::lockstep::testing::Signatures;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ElementType kDouble = ElementType::kFloat64;
constexpr ModelInput kInput = {
    .height = 3, .width = 2, .channels = 1, .classes = 2};

Layers ThreeLayers() {
  Layers layers;
  layers.push_back(std::make_unique<ConvLayer>(
      ConvLayer::Options{
          .name = "conv1", .kernel_size = 3, .channels = 1, .filters = 2},
      kDouble));
  AppendDense(2 * 1 * 2, {3}, kInput.classes, kDouble, layers);
  return layers;
}

TEST(SequentialModelTest, VariablesAreThoseOfTheLayersInOrder) {
  const auto model = SequentialModel::Make(kInput, kDouble, ThreeLayers());

  ASSERT_OK(model);
  EXPECT_THAT(Signatures(**model),
              ElementsAre("conv1/filters[3,3,1,2]", "conv1/bias[2]",
                          "hidden1/weights[4,3]", "hidden1/bias[3]",
                          "logits/weights[3,2]", "logits/bias[2]"));
}

TEST(SequentialModelTest, LastLayersGradientsAreReportedFirst) {
  ModelHarness harness(*SequentialModel::Make(kInput, kDouble, ThreeLayers()),
                       kInput, 3);
  std::vector<size_t> order;

  harness.Pass(
      {.on_gradient = [&](size_t variable) { order.push_back(variable); }});

  EXPECT_THAT(order, ElementsAre(5, 4, 3, 2, 1, 0));
}

TEST(SequentialModelTest, ReportedGradientIsFinal) {
  ModelHarness harness(*SequentialModel::Make(kInput, kDouble, ThreeLayers()),
                       kInput, 3);
  std::vector<std::vector<double>> reported(6);

  harness.Pass({.on_gradient = [&](size_t variable) {
    reported[variable] = harness.gradients()[variable];
  }});

  EXPECT_EQ(reported, harness.gradients());
}

TEST(SequentialModelTest, ValueIsNotReadOnceItsGradientIsReported) {
  ModelHarness undisturbed(
      *SequentialModel::Make(kInput, kDouble, ThreeLayers()), kInput, 3);
  ModelHarness harness(*SequentialModel::Make(kInput, kDouble, ThreeLayers()),
                       kInput, 3);
  undisturbed.Pass();

  harness.Pass({.on_gradient = [&](size_t variable) {
    std::vector<double>& value = harness.values()[variable];
    std::fill(value.begin(), value.end(), std::nan(""));
  }});

  EXPECT_EQ(harness.gradients(), undisturbed.gradients());
}

// Asked before each of three layers, forward and backward.
TEST(SequentialModelTest, UnwantedPassStopsAtTheNextLayer) {
  for (int wanted = 0; wanted < 6; ++wanted) {
    ModelHarness harness(*SequentialModel::Make(kInput, kDouble, ThreeLayers()),
                         kInput, 3);
    std::vector<size_t> reported;
    int asked = 0;
    testing::HookedPass pass(
        {.on_gradient = [&](size_t v) { reported.push_back(v); },
         .unwanted = [&] { return ++asked > wanted; }});

    const absl::Status status = harness.model().Gradients(
        harness.backend(), harness.Batch(), harness.Variables(),
        harness.Gradients(), harness.Loss(), pass);

    EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
    EXPECT_EQ(asked, wanted + 1);
    EXPECT_EQ(reported.size(), wanted > 3 ? 2u * (wanted - 3) : 0u);
  }
}

TEST(SequentialModelTest, PassAfterOneThatWasStoppedIsAsAnyOther) {
  ModelHarness undisturbed(
      *SequentialModel::Make(kInput, kDouble, ThreeLayers()), kInput, 3);
  ModelHarness harness(*SequentialModel::Make(kInput, kDouble, ThreeLayers()),
                       kInput, 3);
  int asked = 0;
  testing::HookedPass pass({.unwanted = [&] { return ++asked > 4; }});
  EXPECT_THAT(harness.model().Gradients(
                  harness.backend(), harness.Batch(), harness.Variables(),
                  harness.Gradients(), harness.Loss(), pass),
              StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(harness.Pass(), undisturbed.Pass());

  EXPECT_EQ(harness.gradients(), undisturbed.gradients());
}

TEST(SequentialModelTest, NoLayersAreRefused) {
  EXPECT_THAT(SequentialModel::Make(kInput, kDouble, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at least one layer")));
}

TEST(SequentialModelTest, VariableTooLargeIsNamed) {
  for (const int64_t side : {int64_t{1} << 16, int64_t{1} << 62}) {
    Layers layers;
    AppendDense(side, {side}, 2, kDouble, layers);

    EXPECT_THAT(SequentialModel::Make(kInput, kDouble, std::move(layers)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("hidden1/weights would be ["),
                               HasSubstr("more than 2147483648 elements"),
                               HasSubstr("model.hidden_units"))));
  }
}

}  // namespace
}  // namespace lockstep::worker
