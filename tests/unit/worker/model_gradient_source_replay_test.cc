#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/tape_backend.h"
#include "tests/testing/status_matchers.h"
#include "worker/model_gradient_source.h"
#include "worker/models/registry.h"

namespace lockstep {
namespace {

using ::lockstep::testing::RandomValues;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Options = ModelGradientSource::Options;

constexpr ModelInput kPictures = {
    .height = 5, .width = 4, .channels = 1, .classes = 3};
constexpr ModelInput kText = {
    .height = 1, .width = 1, .channels = 1, .classes = 7, .tokens = 6};
constexpr int64_t kExamples = 4;

// Other examples for each index.
Batch MakeBatch(const ModelInput& input, int64_t index) {
  Batch batch;
  batch.size = kExamples;
  for (const double x : RandomValues(kExamples * input.elements(), index)) {
    batch.images.push_back(static_cast<float>(x));
  }
  const int64_t labels = kExamples * std::max<int64_t>(1, input.tokens);
  for (int64_t i = 0; i < labels; ++i) {
    batch.labels.push_back(static_cast<int32_t>((i + index) % input.classes));
    batch.tokens.push_back(static_cast<int32_t>(i * index % input.classes));
  }
  return batch;
}

// A model on a device that can record.
class Trainer {
 public:
  Trainer(const ModelConfig& config, const ModelInput& input,
          const Options& options)
      : model_(*MakeModel(config, input)),
        memory_(model_->variables()),
        source_(
            *model_, input, backend_,
            [input](int64_t index) { return MakeBatch(input, index); }, memory_,
            options) {}

  testing::TapeBackend& backend() { return backend_; }
  ModelGradientSource& source() { return source_; }

  // All values of a variable are new for each step, as after a pull.
  void SetValues(int step) {
    for (size_t k = 0; k < model_->variables().size(); ++k) {
      const absl::Span<std::byte> bytes = memory_.value(k);
      const auto count = static_cast<int64_t>(bytes.size() / sizeof(float));
      std::vector<float> values;
      for (const double x : RandomValues(count, 100 * step + k)) {
        values.push_back(static_cast<float>(x));
      }
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
  }
  void SetFirstValue(float value) {
    std::memcpy(memory_.value(0).data(), &value, sizeof(value));
  }

  // The loss, then all gradients.
  std::vector<float> Pass(int step) {
    SetValues(step);
    const absl::StatusOr<GradientResult> result = source_.Compute(step, {});
    EXPECT_OK(result);
    std::vector<float> found = {static_cast<float>(result->loss)};
    for (size_t k = 0; k < model_->variables().size(); ++k) {
      const absl::Span<std::byte> bytes = memory_.gradient(k);
      std::vector<float> gradient(bytes.size() / sizeof(float));
      std::memcpy(gradient.data(), bytes.data(), bytes.size());
      found.insert(found.end(), gradient.begin(), gradient.end());
    }
    return found;
  }

 private:
  testing::TapeBackend backend_;
  const std::unique_ptr<Model> model_;
  const ParameterMemory memory_;
  ModelGradientSource source_;
};

ModelConfig Config(const std::string& kind) {
  ModelConfig config;
  config.kind = kind;
  if (kind == "mlp") config.hidden_units = {9};
  if (kind == "cnn" || kind == "resnet") config.conv_filters = {3, 2};
  if (kind == "resnet" || kind == "transformer") config.layers = 1;
  if (kind == "transformer") {
    config.heads = 2;
    config.width = 8;
  }
  return config;
}

class ModelReplayTest : public ::testing::TestWithParam<const char*> {
 protected:
  const ModelConfig config_ = Config(GetParam());
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
  ModelConfig config = Config("transformer");
  config.dropout = 0.5;
  Trainer replaying(config, kText, {});
  Trainer launching(config, kText, {.replay = false});
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(replaying.Pass(step), launching.Pass(step));
  }

  EXPECT_EQ(replaying.source().replays(), 0);
}

TEST(ReplayTest, LargeModelsAndBatchesInPartsAreLaunched) {
  ModelConfig large = Config("mlp");
  large.hidden_units = {1024, 1025};
  Trainer one(large, kPictures, {});
  Trainer other(Config("mlp"), kPictures, {.micro_batches = 2});
  for (int step = 1; step <= 3; ++step) {
    one.Pass(step);
    other.Pass(step);
  }

  EXPECT_EQ(one.source().replays(), 0);
  EXPECT_EQ(other.source().replays(), 0);
}

TEST(ReplayTest, EachGradientIsReportedOnce) {
  Trainer trainer(Config("mlp"), kPictures, {});
  for (int step = 1; step <= 2; ++step) trainer.Pass(step);
  std::vector<size_t> reported;

  ASSERT_OK(trainer.source().Compute(
      3, {.on_gradient = [&](size_t v) { reported.push_back(v); }}));

  EXPECT_EQ(trainer.source().replays(), 2);
  EXPECT_THAT(reported, ElementsAre(3, 2, 1, 0));
}

TEST(ReplayTest, NonFiniteGradientsOfAReplayAreCountedOrRefused) {
  for (const bool refuse : {false, true}) {
    Trainer trainer(Config("softmax"), kPictures,
                    {.refuse_non_finite = refuse});
    for (int step = 1; step <= 2; ++step) trainer.Pass(step);
    trainer.SetFirstValue(std::numeric_limits<float>::infinity());
    std::vector<size_t> reported;

    const absl::StatusOr<GradientResult> result = trainer.source().Compute(
        3, {.on_gradient = [&](size_t v) { reported.push_back(v); }});

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
  Trainer trainer(Config("softmax"), kPictures,
                  {.refuse_non_finite = true, .replay = false});
  trainer.Pass(1);
  trainer.SetFirstValue(std::numeric_limits<float>::infinity());
  std::vector<size_t> reported;
  const PassHooks hooks = {
      .on_gradient = [&](size_t v) { reported.push_back(v); }};

  EXPECT_THAT(trainer.source().Compute(2, hooks),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("softmax/bias has 3 elements")));

  EXPECT_THAT(reported, IsEmpty());
  trainer.SetFirstValue(1);
  ASSERT_OK(trainer.source().Compute(3, hooks));
  EXPECT_THAT(reported, ElementsAre(1, 0));
}

TEST(ReplayTest, PassThatNobodyWantsIsNotReplayed) {
  Trainer trainer(Config("mlp"), kPictures, {});
  for (int step = 1; step <= 2; ++step) trainer.Pass(step);

  EXPECT_THAT(trainer.source().Compute(3, {.unwanted = [] { return true; }}),
              StatusIs(absl::StatusCode::kAborted));

  EXPECT_EQ(trainer.source().replays(), 1);
}

TEST(ReplayTest, PassesThatCannotBeRecordedAreLaunched) {
  Trainer broken(Config("mlp"), kPictures, {});
  Trainer launching(Config("mlp"), kPictures, {.replay = false});
  broken.backend().broken = true;
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(broken.Pass(step), launching.Pass(step));
  }

  EXPECT_EQ(broken.source().replays(), 0);
}

}  // namespace
}  // namespace lockstep
