#include "worker/model_gradient_source.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"
#include "worker/models/registry.h"

namespace lockstep {
namespace {

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
    memory_.emplace(model_->variables());
  }

  std::unique_ptr<ComputeBackend> backend_;
  std::unique_ptr<Model> model_;
  std::optional<ParameterMemory> memory_;
};

TEST_F(ModelGradientSourceTest, GradientsLandInTheWorkersMemory) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_);

  const absl::StatusOr<GradientResult> result = source.Compute(1, {});

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
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_);
  std::vector<size_t> reported;

  const absl::StatusOr<GradientResult> result = source.Compute(
      1,
      {.on_gradient = [&](size_t variable) { reported.push_back(variable); }});

  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(reported, ::testing::ElementsAre(1, 0));
}

TEST_F(ModelGradientSourceTest, PassThatNobodyWantsIsAborted) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_);

  EXPECT_THAT(source.Compute(1, {.unwanted = [] { return true; }}),
              StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(source.Compute(2, {}), IsOk());
}

TEST_F(ModelGradientSourceTest, EndOfInputIsOutOfRange) {
  ModelGradientSource source(*model_, kInput, *backend_, OneExample, *memory_);

  EXPECT_THAT(source.Compute(3, {}), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace lockstep
