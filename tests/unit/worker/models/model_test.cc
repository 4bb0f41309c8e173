#include "worker/models/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_harness.h"
#include "worker/compute/cpu/cpu_backend.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Config;
using ::lockstep::testing::ModelHarness;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;

constexpr ElementType kDouble = ElementType::kFloat64;
constexpr ModelInput kInput = {
    .height = 3, .width = 2, .channels = 1, .classes = 3};

// Counts allocations.
class CountingBackend : public CpuBackend {
 public:
  CountingBackend() = default;

  absl::StatusOr<Buffer> Allocate(size_t bytes) override {
    ++allocations;
    return CpuBackend::Allocate(bytes);
  }

  int allocations = 0;
};

std::unique_ptr<Model> Make(const ModelConfig& config) {
  return *MakeModel(config, kInput, kDouble);
}

class ModelTest : public ::testing::Test {
 protected:
  // Neither call may go on, nor write anything.
  void ExpectRefused(const BatchView& batch, const std::string& message) {
    EXPECT_THAT(
        model_.model().Gradients(model_.backend(), batch, model_.Variables(),
                                 model_.Gradients(), model_.Loss()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_THAT(
        model_.model().Evaluate(model_.backend(), batch, model_.Variables()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
    for (const auto& gradient : model_.gradients()) {
      EXPECT_THAT(gradient, Each(IsNan()));
    }
  }

  ModelHarness model_{Make({}), kInput, 4};
};

TEST_F(ModelTest, LossOfZeroVariablesIsThatOfAGuess) {
  for (auto& values : model_.values()) {
    std::fill(values.begin(), values.end(), 0);
  }

  EXPECT_NEAR(model_.Pass(), std::log(3), 1e-12);
}

TEST_F(ModelTest, FlatImagesAreTheSameAsSquareOnes) {
  const double loss = model_.Pass();
  const auto gradients = model_.gradients();
  BatchView batch = model_.Batch();
  batch.images = batch.images.Reshaped({4, 6});

  ASSERT_OK(model_.model().Gradients(model_.backend(), batch,
                                     model_.Variables(), model_.Gradients(),
                                     model_.Loss()));

  EXPECT_EQ(*model_.Loss().data<double>(), loss);
  EXPECT_EQ(model_.gradients(), gradients);
}

TEST_F(ModelTest, EvaluationSumsOverTheBatch) {
  const double loss = model_.Pass();

  const absl::StatusOr<BatchScore> evaluation = model_.model().Evaluate(
      model_.backend(), model_.Batch(), model_.Variables());

  ASSERT_OK(evaluation);
  EXPECT_NEAR(evaluation->loss_sum, 4 * loss, 1e-12);
  EXPECT_EQ(evaluation->examples, 4);
}

TEST_F(ModelTest, EvaluationOfNothingIsZero) {
  ModelHarness empty(Make({}), kInput, 0);

  const absl::StatusOr<BatchScore> evaluation =
      empty.model().Evaluate(empty.backend(), empty.Batch(), empty.Variables());

  ASSERT_OK(evaluation);
  EXPECT_EQ(evaluation->loss_sum, 0);
  EXPECT_EQ(evaluation->correct, 0);
  EXPECT_EQ(evaluation->examples, 0);
}

TEST_F(ModelTest, ImagesOfAnotherFormAreRefused) {
  BatchView batch = model_.Batch();
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{4, 5}, Shape{4, 2, 3, 1},
                             Shape{3, 3, 2, 1}, Shape{-1, 6}}) {
    batch.images = batch.images.Reshaped(shape);
    ExpectRefused(batch, "the batch must");
  }
  batch.images = ConstTensor(ElementType::kFloat32, {4, 6}, nullptr);
  ExpectRefused(batch, "images of the batch must be float64 [n,3,2,1]");
}

TEST_F(ModelTest, LabelsOfAnotherFormAreRefused) {
  BatchView batch = model_.Batch();
  const ConstTensor labels = batch.labels;
  batch.labels = labels.Reshaped({3});
  ExpectRefused(batch, "as many labels as images, int32 [4], got int32 [3]");

  batch.labels = labels.WithBound(0);
  ExpectRefused(batch, "labels of the batch must be known to be in [0, 3)");
  batch.labels = labels.WithBound(4);
  ExpectRefused(batch, "must be known to be in [0, 3), got [0, 4)");
}

TEST_F(ModelTest, VariablesOfAnotherFormAreRefused) {
  const std::vector<ConstTensor> good = model_.Variables();
  const std::vector<std::vector<ConstTensor>> bad = {
      {good[0]},
      {good[1], good[0]},
      {good[0].Reshaped({3, 6}), good[1]},
      {ConstTensor(ElementType::kFloat32, {6, 3}, good[0].raw()), good[1]},
      {ConstTensor(kDouble, {6, 3}, nullptr), good[1]}};

  for (const auto& variables : bad) {
    EXPECT_THAT(
        model_.model().Evaluate(model_.backend(), model_.Batch(), variables),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("the values of")));
  }
}

TEST_F(ModelTest, GradientsOfAnotherFormAreRefused) {
  std::vector<Tensor> gradients = model_.Gradients();
  gradients[0] = gradients[0].Reshaped({3, 6});

  EXPECT_THAT(
      model_.model().Gradients(model_.backend(), model_.Batch(),
                               model_.Variables(), gradients, model_.Loss()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "the gradient of softmax/weights must be float64 [6,3], got "
               "float64 [3,6]"));
}

TEST_F(ModelTest, WarmModelAllocatesNothing) {
  for (const ModelConfig& config :
       {Config("mlp", {5, 7}), Config("cnn", {}, {2, 3})}) {
    CountingBackend backend;
    ModelHarness large(Make(config), kInput, 9);
    ModelHarness small(Make(config), kInput, 4);
    const auto pass = [&](ModelHarness& harness) {
      EXPECT_OK(large.model().Gradients(backend, harness.Batch(),
                                        harness.Variables(),
                                        harness.Gradients(), harness.Loss()));
    };
    pass(large);
    const int warm = backend.allocations;
    ASSERT_GT(warm, 0);

    pass(small);
    pass(large);

    EXPECT_EQ(backend.allocations, warm);
  }
}

TEST_F(ModelTest, SizeOfThePassBeforeDoesNotMatter) {
  const ModelConfig config = Config("cnn", {}, {2, 3});
  ModelHarness fresh(Make(config), kInput, 3);
  ModelHarness used(Make(config), kInput, 3);
  ModelHarness other(Make(config), kInput, 8);
  ASSERT_OK(used.model().Gradients(used.backend(), other.Batch(),
                                   other.Variables(), other.Gradients(),
                                   other.Loss()));

  EXPECT_EQ(used.Pass(), fresh.Pass());
  EXPECT_EQ(used.gradients(), fresh.gradients());
}

TEST_F(ModelTest, NaNInAnImageReachesLossAndGradients) {
  ModelHarness cnn(Make(Config("cnn", {4}, {2})), kInput, 2);
  cnn.images()[0] = std::numeric_limits<double>::quiet_NaN();

  EXPECT_THAT(cnn.Pass(), IsNan());
  EXPECT_THAT(cnn.gradients().back(), Each(IsNan()));
}

}  // namespace
}  // namespace lockstep::worker
