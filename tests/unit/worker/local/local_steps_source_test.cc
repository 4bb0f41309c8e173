#include "worker/local/local_steps_source.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/floats.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Floats;
using ::lockstep::testing::SetFloats;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSteps = 3;

// The gradient of batch i is i + 1 for each element, the loss the first value.
class CountingSource final : public GradientSource {
 public:
  CountingSource(const ParameterMemory& memory, std::vector<int64_t>& batches)
      : memory_(memory), batches_(batches) {}

  absl::Status Begin(int64_t index, GradientPass& pass) override {
    if (index >= 9) return absl::OutOfRangeError("end of input");
    batches_.push_back(index);
    return pass.CheckWanted();
  }
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    const auto gradient = static_cast<float>(batches_.back() + 1);
    SetFloats(memory_.gradient(1), {gradient});
    pass.GradientReady(1);
    SetFloats(memory_.gradient(0), {gradient});
    pass.GradientReady(0);
    return GradientResult{Floats(memory_.value(0))[0], 10, 1};
  }

 private:
  const ParameterMemory& memory_;
  std::vector<int64_t>& batches_;
};

class CountingPass final : public GradientPass {
 public:
  absl::Status NeedValues(size_t first, size_t count) override {
    needed += count + first;
    return absl::OkStatus();
  }
  absl::Status CheckWanted() override {
    return wanted-- > 0 ? absl::OkStatus() : absl::AbortedError("not wanted");
  }
  void GradientReady(size_t variable) override { ready.push_back(variable); }

  size_t needed = 0;
  int wanted = 1000;
  std::vector<size_t> ready;
};

class LocalStepsSourceTest : public ::testing::Test {
 protected:
  void Make(const ClippingConfig& clipping = {}) {
    const std::vector<VariableSpec> variables = {{"a", {1}}, {"b", {1}}};
    JobConfig job;
    job.train_steps = 100;
    job.local_steps = kSteps;
    job.local.learning_rate.base = 0.5;
    auto shared = ParameterMemory::Make(variables);
    ASSERT_OK(shared);
    shared_.emplace(*std::move(shared));
    SetFloats(shared_->value(0), {16});
    SetFloats(shared_->value(1), {32});
    auto made = LocalVariables::Make(job, variables);
    ASSERT_OK(made);
    auto local = std::make_unique<LocalVariables>(*std::move(made));
    auto inner = std::make_unique<CountingSource>(local->memory(), batches_);
    source_ = std::make_unique<LocalStepsSource>(
        std::move(inner), std::move(local), *shared_, kSteps, clipping,
        DType::kFloat32);
  }

  std::optional<ParameterMemory> shared_;
  std::vector<int64_t> batches_;
  std::unique_ptr<LocalStepsSource> source_;
  CountingPass pass_;
};

TEST_F(LocalStepsSourceTest,
       APassIsTheChangeOfSoManyStepsWithBatchesOfTheirOwn) {
  Make();
  ASSERT_OK(source_->Prepare({.step = 1}, 1));
  ASSERT_OK(source_->Begin(1, pass_));
  EXPECT_EQ(pass_.needed, 2);
  const auto result = source_->Finish(pass_);
  ASSERT_OK(result);
  EXPECT_THAT(batches_, ElementsAre(3, 4, 5));
  // 0.5 * (4 + 5 + 6)
  EXPECT_THAT(Floats(shared_->gradient(0)), ElementsAre(7.5));
  EXPECT_THAT(Floats(shared_->gradient(1)), ElementsAre(7.5));
  EXPECT_THAT(Floats(shared_->value(0)), ElementsAre(16));
  EXPECT_THAT(pass_.ready, ElementsAre(1, 0));
  EXPECT_DOUBLE_EQ(result->loss, (16 + 14 + 11.5) / 3);
  EXPECT_EQ(result->examples, 30);
  EXPECT_EQ(result->non_finite, 3);
}

TEST_F(LocalStepsSourceTest, APassThatIsRedoneIsTheSamePass) {
  Make();
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(source_->Prepare({.step = 2}, 0));
    ASSERT_OK(source_->Begin(0, pass_));
    ASSERT_OK(source_->Finish(pass_));
    EXPECT_THAT(Floats(shared_->gradient(0)), ElementsAre(3));
  }
}

TEST_F(LocalStepsSourceTest, GradientsAreClippedBeforeEachStep) {
  ClippingConfig clipping;
  clipping.kind = ClippingConfig::Kind::kValue;
  clipping.limit = 2;
  Make(clipping);
  ASSERT_OK(source_->Begin(0, pass_));
  ASSERT_OK(source_->Finish(pass_));
  // The gradients are 1, 2 and 3.
  EXPECT_THAT(Floats(shared_->gradient(0)), ElementsAre(2.5));
}

TEST_F(LocalStepsSourceTest, BatchesThatMakeNoWholePassAreLeftOut) {
  Make();
  ASSERT_OK(source_->Begin(2, pass_));
  EXPECT_THAT(source_->Begin(3, pass_),
              StatusIs(absl::StatusCode::kOutOfRange));
}

// A server that is at fault may send any number.
TEST_F(LocalStepsSourceTest, NumbersOfLocalStepsThatOverflowAreRefused) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max() / kSteps - 1;
  Make();
  ASSERT_OK(source_->Prepare({.step = kLargest}, kLargest));
  for (const auto& [step, batch] :
       {std::pair{kLargest + 1, int64_t{0}}, {int64_t{0}, kLargest + 1}}) {
    EXPECT_THAT(source_->Prepare({.step = step}, batch),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("at most ", kLargest))));
  }
  EXPECT_TRUE(batches_.empty());
}

TEST_F(LocalStepsSourceTest, APassThatIsNotWantedEndsBetweenItsSteps) {
  Make();
  pass_.wanted = 3;  // before the first step, in it, before the second
  EXPECT_THAT(source_->Begin(0, pass_), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(batches_.size(), 2);
  EXPECT_TRUE(pass_.ready.empty());
}

}  // namespace
}  // namespace lockstep::worker
