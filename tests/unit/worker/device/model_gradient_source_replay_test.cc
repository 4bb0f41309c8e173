#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/models/zoo/model_trainer.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ComputePass;
using ::lockstep::testing::ConfigOf;
using ::lockstep::testing::kPictures;
using ::lockstep::testing::kText;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Trainer = testing::ModelTrainer;

class ModelReplayTest : public ::testing::TestWithParam<const char*> {
 protected:
  const ModelConfig config_ = ConfigOf(GetParam());
  const ModelInput input_ = config_.kind == "transformer" ? kText : kPictures;
};

TEST_P(ModelReplayTest, ReplayedPassesHaveTheBitsOfLaunchedOnes) {
  Trainer replaying(config_, input_, {});
  Trainer launching(config_, input_, {.replay = false});
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(replaying.Pass(step), launching.Pass(step)) << "pass " << step;
  }

  EXPECT_EQ(replaying.source().replays(), 3);
  EXPECT_EQ(launching.source().replays(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelReplayTest,
                         ::testing::Values("softmax", "mlp", "cnn", "resnet",
                                           "transformer"));

// A recording holds the key that a kernel was launched with.
TEST(ReplayTest, PassesWithDropoutAreLaunched) {
  ModelConfig config = ConfigOf("transformer");
  config.dropout = 0.5;
  Trainer replaying(config, kText, {});
  Trainer launching(config, kText, {.replay = false});
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(replaying.Pass(step), launching.Pass(step));
  }

  EXPECT_EQ(replaying.source().replays(), 0);
}

TEST(ReplayTest, LargeModelsAndBatchesInPartsAreLaunched) {
  ModelConfig large = ConfigOf("mlp");
  large.hidden_units = {1024, 1025};
  Trainer one(large, kPictures, {});
  Trainer other(ConfigOf("mlp"), kPictures, {.micro_batches = 2});
  for (int step = 1; step <= 3; ++step) {
    one.Pass(step);
    other.Pass(step);
  }

  EXPECT_EQ(one.source().replays(), 0);
  EXPECT_EQ(other.source().replays(), 0);
}

TEST(ReplayTest, EachGradientIsReportedOnce) {
  Trainer trainer(ConfigOf("mlp"), kPictures, {});
  for (int step = 1; step <= 2; ++step) trainer.Pass(step);
  std::vector<size_t> reported;

  ASSERT_OK(ComputePass(trainer.source(), 3, {.on_gradient = [&](size_t v) {
                          reported.push_back(v);
                        }}));

  EXPECT_EQ(trainer.source().replays(), 2);
  EXPECT_THAT(reported, ElementsAre(3, 2, 1, 0));
}

TEST(ReplayTest, NonFiniteGradientsOfAReplayAreCountedOrRefused) {
  for (const bool refuse : {false, true}) {
    Trainer trainer(ConfigOf("softmax"), kPictures,
                    {.refuse_non_finite = refuse});
    for (int step = 1; step <= 2; ++step) trainer.Pass(step);
    trainer.SetFirstValue(std::numeric_limits<float>::infinity());
    std::vector<size_t> reported;

    const absl::StatusOr<GradientResult> result =
        ComputePass(trainer.source(), 3,
                    {.on_gradient = [&](size_t v) { reported.push_back(v); }});

    if (refuse) {
      EXPECT_THAT(result, StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("softmax/bias has 3 elements")));
      EXPECT_THAT(reported, IsEmpty());
    } else {
      ASSERT_OK(result);
      EXPECT_GE(result->non_finite, 3);
    }
    EXPECT_EQ(trainer.source().replays(), 2);
  }
}

TEST(ReplayTest, NonFiniteGradientsOfALaunchAreRefusedBeforeTheyAreReported) {
  Trainer trainer(ConfigOf("softmax"), kPictures,
                  {.refuse_non_finite = true, .replay = false});
  trainer.Pass(1);
  trainer.SetFirstValue(std::numeric_limits<float>::infinity());
  std::vector<size_t> reported;
  const testing::PassHooks hooks = {
      .on_gradient = [&](size_t v) { reported.push_back(v); }};

  EXPECT_THAT(ComputePass(trainer.source(), 2, hooks),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("softmax/bias has 3 elements")));

  EXPECT_THAT(reported, IsEmpty());
  trainer.SetFirstValue(1);
  ASSERT_OK(ComputePass(trainer.source(), 3, hooks));
  EXPECT_THAT(reported, ElementsAre(1, 0));
}

TEST(ReplayTest, UnwantedPassIsNotReplayed) {
  Trainer trainer(ConfigOf("mlp"), kPictures, {});
  for (int step = 1; step <= 2; ++step) trainer.Pass(step);

  EXPECT_THAT(
      ComputePass(trainer.source(), 3, {.unwanted = [] { return true; }}),
      StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(trainer.source().replays(), 1);
}

TEST(ReplayTest, PassesThatCannotBeRecordedAreLaunched) {
  Trainer broken(ConfigOf("mlp"), kPictures, {});
  Trainer launching(ConfigOf("mlp"), kPictures, {.replay = false});
  broken.backend().broken = true;
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(broken.Pass(step), launching.Pass(step));
  }

  EXPECT_EQ(broken.source().replays(), 0);
}

}  // namespace
}  // namespace lockstep::worker
