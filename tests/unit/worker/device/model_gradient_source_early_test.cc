// Passes that begin before all values are there.

#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_trainer.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ComputePass;
using ::lockstep::testing::ConfigOf;
using ::lockstep::testing::HookedPass;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::kPictures;
using ::lockstep::testing::kText;
using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using Trainer = testing::ModelTrainer;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr char kUntouched = 0x55;

// By the model, how many parts a batch has, and whether passes are replayed.
class EarlyPassTest
    : public ::testing::TestWithParam<std::tuple<const char*, int, bool>> {
 protected:
  const ModelConfig config_ = ConfigOf(std::get<0>(GetParam()));
  const ModelInput input_ = config_.kind == "transformer" ? kText : kPictures;
  const ModelGradientSource::Options options_{
      .micro_batches = std::get<1>(GetParam()),
      .replay = std::get<2>(GetParam())};
};

TEST_P(EarlyPassTest, ReadsNoValueBeforeItIsThere) {
  Trainer early(config_, input_, options_);
  Trainer late(config_, input_, options_);
  EXPECT_TRUE(early.source().MayBeginEarly());
  for (int step = 1; step <= 3; ++step) {
    early.FillValues(kNone);
    std::vector<int> asked(early.num_variables());

    const std::vector<float> found =
        early.PassWith(step, {.need_values = [&](size_t first, size_t count) {
                         for (size_t k = first; k < first + count; ++k) {
                           ++asked[k];
                           early.SetValue(step, k);
                         }
                         return absl::OkStatus();
                       }});

    EXPECT_THAT(asked, Each(1));
    EXPECT_EQ(found, late.Pass(step)) << "pass " << step;
  }
}

TEST_P(EarlyPassTest, WritesNoGradientBeforeItMay) {
  Trainer trainer(config_, input_, options_);
  for (int step = 1; step <= 3; ++step) {
    for (size_t k = 0; k < trainer.num_variables(); ++k) {
      std::memset(trainer.gradient(k).data(), kUntouched,
                  trainer.gradient(k).size());
    }
    HookedPass pass;

    EXPECT_THAT(trainer.source().Begin(step, pass), IsOk());

    for (size_t k = 0; k < trainer.num_variables(); ++k) {
      EXPECT_THAT(trainer.gradient(k), Each(std::byte{kUntouched}));
    }
    EXPECT_THAT(trainer.source().Finish(pass), IsOk());
  }
}

TEST_P(EarlyPassTest, ReportsToThePassThatFinishesIt) {
  Trainer trainer(config_, input_, options_);
  for (int step = 1; step <= 3; ++step) {
    std::vector<int> reported(trainer.num_variables());
    HookedPass early(
        {.on_gradient = [&](size_t) { ADD_FAILURE(); },
         .need_values = [](size_t, size_t) { return absl::OkStatus(); }});
    HookedPass pass({.on_gradient = [&](size_t k) { ++reported[k]; }});

    EXPECT_THAT(trainer.source().Begin(step, early), IsOk());
    EXPECT_THAT(trainer.source().Finish(pass), IsOk());

    EXPECT_THAT(reported, Each(1));
  }
}

TEST_P(EarlyPassTest, DroppedPassLeavesNothingBehind) {
  Trainer trainer(config_, input_, options_);
  Trainer other(config_, input_, options_);
  for (int step = 1; step <= 3; ++step) {
    HookedPass dropped;
    EXPECT_THAT(trainer.source().Begin(step, dropped), IsOk());
    EXPECT_THAT(ComputePass(trainer.source(), step,
                            {.need_values =
                                 [](size_t, size_t) {
                                   return absl::AbortedError("another attempt");
                                 }}),
                StatusIs(absl::StatusCode::kAborted, "another attempt"));

    EXPECT_EQ(trainer.Pass(step), other.Pass(step));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EarlyPassTest,
                         ::testing::Combine(::testing::Values("softmax", "mlp",
                                                              "cnn", "resnet",
                                                              "transformer"),
                                            ::testing::Values(1, 2),
                                            ::testing::Bool()));

}  // namespace
}  // namespace lockstep::worker
