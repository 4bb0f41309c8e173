#include "worker/device/model_gradient_source.h"

#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/hooked_pass.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/models/zoo/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ComputePass;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

constexpr ModelInput kInput{2, 2, 1, 3};

// One example of class `index`, until index 2.
absl::StatusOr<Batch> OneExample(int64_t index) {
  if (index > 2) return absl::OutOfRangeError("end of input");
  return Batch{{1, 0, 0, 1}, {static_cast<int32_t>(index)}, 1};
}

class ModelGradientSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto backend = MakeBackend("cpu", {1});
    ASSERT_THAT(backend, IsOk());
    backend_ = *std::move(backend);
    ModelConfig config;
    config.kind = "softmax";
    auto model = MakeModel(config, kInput);
    ASSERT_THAT(model, IsOk());
    model_ = *std::move(model);
    memory_ = *ParameterMemory::Make(model_->variables());
  }

  std::unique_ptr<ComputeBackend> backend_;
  std::unique_ptr<Model> model_;
  std::optional<ParameterMemory> memory_;
};

TEST_F(ModelGradientSourceTest, GradientsLandInTheWorkersMemory) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_,
                             {});

  const absl::StatusOr<GradientResult> result = ComputePass(source, 1);

  ASSERT_THAT(result, IsOk());
  EXPECT_NEAR(result->loss, 1.0986, 1e-4);  // log 3: all classes are equal
  EXPECT_EQ(result->examples, 1);
  float bias[3];
  ASSERT_EQ(memory_->gradient(1).size(), sizeof(bias));
  std::memcpy(bias, memory_->gradient(1).data(), sizeof(bias));
  EXPECT_NEAR(bias[0], 1.0 / 3, 1e-6);
  EXPECT_NEAR(bias[1], 1.0 / 3 - 1, 1e-6);
}

TEST_F(ModelGradientSourceTest, GradientsAreReportedAsTheyBecomeFinal) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_,
                             {});
  std::vector<size_t> reported;

  const absl::StatusOr<GradientResult> result = ComputePass(
      source, 1,
      {.on_gradient = [&](size_t variable) { reported.push_back(variable); }});

  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(reported, ::testing::ElementsAre(1, 0));
}

TEST_F(ModelGradientSourceTest, UnwantedPassIsAborted) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_,
                             {});

  EXPECT_THAT(ComputePass(source, 1, {.unwanted = [] { return true; }}),
              StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(ComputePass(source, 2), IsOk());
}

TEST_F(ModelGradientSourceTest, EndOfInputIsOutOfRange) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_,
                             {});

  EXPECT_THAT(ComputePass(source, 3), StatusIs(absl::StatusCode::kOutOfRange));
}

// Four examples of different classes and pictures.
absl::StatusOr<Batch> FourExamples(int64_t) {
  return Batch{
      {1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0.5, 0, 0, 0.25}, {0, 1, 2, 1}, 4};
}

std::vector<float> GradientOf(const ParameterMemory& memory, size_t variable) {
  std::vector<float> values(memory.gradient(variable).size() / sizeof(float));
  std::memcpy(values.data(), memory.gradient(variable).data(),
              memory.gradient(variable).size());
  return values;
}

TEST_F(ModelGradientSourceTest, PartsOfABatchAddUpToTheWhole) {
  ModelGradientSource whole(*model_, kInput, *backend_, FourExamples, *memory_,
                            {});
  const absl::StatusOr<GradientResult> expected = ComputePass(whole, 0);
  ASSERT_THAT(expected, IsOk());
  const std::vector<float> gradient = GradientOf(*memory_, 0);
  std::memset(memory_->gradient(0).data(), 0xff, memory_->gradient(0).size());
  std::vector<size_t> reported;

  ModelGradientSource parts(*model_, kInput, *backend_, FourExamples, *memory_,
                            {.micro_batches = 2});
  const absl::StatusOr<GradientResult> result = ComputePass(
      parts, 0,
      {.on_gradient = [&](size_t variable) { reported.push_back(variable); }});

  ASSERT_THAT(result, IsOk());
  EXPECT_NEAR(result->loss, expected->loss, 1e-6);
  EXPECT_EQ(result->examples, 4);
  EXPECT_THAT(GradientOf(*memory_, 0),
              ::testing::Pointwise(::testing::FloatNear(1e-6f), gradient));
  EXPECT_THAT(reported, ::testing::ElementsAre(1, 0));
}

TEST_F(ModelGradientSourceTest, PartsHaveToDivideTheBatch) {
  ModelGradientSource source(*model_, kInput, *backend_, FourExamples, *memory_,
                             {.micro_batches = 3});

  EXPECT_THAT(ComputePass(source, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("micro_batches must divide")));
}

TEST_F(ModelGradientSourceTest, NonFiniteElementsAreCounted) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(memory_->value(0).data(), &infinity, sizeof(infinity));
  ModelGradientSource source(*model_, kInput, *backend_, FourExamples, *memory_,
                             {});

  const absl::StatusOr<GradientResult> result = ComputePass(source, 0);

  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->non_finite, 0);
}

TEST_F(ModelGradientSourceTest,
       NonFiniteGradientsThatAreRefusedAreNotReported) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::memcpy(memory_->value(0).data(), &infinity, sizeof(infinity));
  ModelGradientSource source(*model_, kInput, *backend_, FourExamples, *memory_,
                             {.refuse_non_finite = true});
  int reported = 0;

  EXPECT_THAT(
      ComputePass(source, 0, {.on_gradient = [&](size_t) { ++reported; }}),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          ::testing::HasSubstr("softmax/bias has 3 elements that are NaN")));

  EXPECT_EQ(reported, 0);
}

}  // namespace
}  // namespace lockstep::worker
