#include "worker/scoring/checkpoint_scorer.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::WriteFile;
using ::lockstep::testing::WriteSoftmaxCheckpoint;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::Pointwise;

// Two pictures of 1 x 2, and a checkpoint of three classes that takes the
// brighter pixel for the class.
class CheckpointScorerTest : public ::testing::Test {
 protected:
  CheckpointScorerTest() {
    WriteFile(dir_.Join("images"), IdxBytes({2, 1, 2}, {255, 0, 0, 255}));
    WriteLabels({0, 1});
    WriteSoftmaxCheckpoint(dir_.Join("checkpoints"), 7, /*pixels=*/2,
                           /*classes=*/3);
    job_.model.kind = "softmax";
    job_.data.test_images = dir_.Join("images");
    job_.data.test_labels = dir_.Join("labels");
  }

  void WriteLabels(const testing::Bytes& labels) {
    WriteFile(dir_.Join("labels"), IdxBytes({2}, labels));
  }

  std::unique_ptr<CheckpointScorer> Scorer() {
    auto scorer = CheckpointScorer::Make(job_, *backend_);
    EXPECT_OK(scorer);
    return *std::move(scorer);
  }

  absl::StatusOr<TableScore> Score(CheckpointScorer& scorer) {
    CheckpointReader reader =
        *CheckpointReader::Open(dir_.Join("checkpoints"), 7);
    return scorer.Score(reader);
  }

  const testing::TempDir dir_;
  JobConfig job_;
  const std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
};

TEST_F(CheckpointScorerTest, TestSetWithoutTheLastClassIsScoredByTheJobs) {
  const auto scorer = Scorer();
  ASSERT_OK(scorer->FitTo({.height = 1, .width = 2, .classes = 3}));

  const auto score = Score(*scorer);

  ASSERT_THAT(score, IsOk());
  EXPECT_EQ(score->accuracy, 1);
  EXPECT_EQ(score->examples, 2);
}

// 500 examples are a batch.
TEST_F(CheckpointScorerTest, SaysAfterEachBatchHowFarItIs) {
  constexpr int kExamples = 1200;
  WriteFile(dir_.Join("images"),
            IdxBytes({kExamples, 1, 2}, testing::Bytes(2 * kExamples, 255)));
  WriteFile(dir_.Join("labels"),
            IdxBytes({kExamples}, testing::Bytes(kExamples, 2)));
  const auto scorer = Scorer();
  CheckpointReader reader =
      *CheckpointReader::Open(dir_.Join("checkpoints"), 7);
  std::vector<std::pair<int64_t, int64_t>> told;

  ASSERT_OK(scorer->Score(reader, [&](int64_t done, int64_t total) {
    told.emplace_back(done, total);
  }));

  EXPECT_THAT(told,
              ElementsAre(Pair(500, 1200), Pair(1000, 1200), Pair(1200, 1200)));
}

TEST_F(CheckpointScorerTest, PredictionsAreProbabilitiesOfEveryClass) {
  job_.data.classes = 3;
  CheckpointReader reader =
      *CheckpointReader::Open(dir_.Join("checkpoints"), 7);

  const auto predictions = Scorer()->Predict(reader);

  ASSERT_OK(predictions);
  EXPECT_EQ(predictions->examples, 2);
  EXPECT_EQ(predictions->classes, 3);
  // Logits 9, 0, 0 and 0, 9, 0.
  const float high = 1 / (1 + 2 * std::exp(-9.0F));
  const float low = (1 - high) / 2;
  EXPECT_THAT(predictions->probabilities,
              Pointwise(FloatNear(1e-6F), {high, low, low, low, high, low}));
}

TEST_F(CheckpointScorerTest, FeaturesWithoutLabelsArePredicted) {
  job_.data.test_images.clear();
  job_.data.test_labels.clear();
  CheckpointReader reader =
      *CheckpointReader::Open(dir_.Join("checkpoints"), 7);
  EXPECT_THAT(
      CheckpointScorer::MakeForFeatures(job_, dir_.Join("images"), *backend_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("set data.classes")));

  job_.data.classes = 3;
  const auto scorer =
      CheckpointScorer::MakeForFeatures(job_, dir_.Join("images"), *backend_);
  ASSERT_OK(scorer);
  const auto predictions = (*scorer)->Predict(reader);

  ASSERT_OK(predictions);
  EXPECT_EQ(predictions->examples, 2);
  EXPECT_GT(predictions->probabilities[0], 0.99F);
}

TEST_F(CheckpointScorerTest, CheckpointOfAnotherModelSaysWhatToDo) {
  const auto scorer = Scorer();

  EXPECT_THAT(Score(*scorer),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("step 7"), HasSubstr("2 classes"),
                             HasSubstr("set data.classes"))));

  job_.data.classes = 3;
  EXPECT_THAT(Score(*Scorer()), IsOk());
}

TEST_F(CheckpointScorerTest, ClassesOfTheTrainingSetAreTakenIfItIsThere) {
  const auto without = Scorer();
  ASSERT_OK(without->FitToTrainingSet());
  EXPECT_THAT(Score(*without), StatusIs(absl::StatusCode::kFailedPrecondition));

  WriteFile(dir_.Join("train"), IdxBytes({3}, {1, 0, 2}));
  job_.data.train_labels = dir_.Join("train");
  const auto with = Scorer();
  ASSERT_OK(with->FitToTrainingSet());
  EXPECT_THAT(Score(*with), IsOk());
}

TEST_F(CheckpointScorerTest, TestSetOfAnotherShapeIsRefused) {
  EXPECT_THAT(Scorer()->FitTo({.height = 2, .width = 2, .classes = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1x2x1"), HasSubstr("2x2x1"),
                             HasSubstr("data.test_images"))));
}

TEST_F(CheckpointScorerTest, LabelBeyondTheJobsClassesIsRefused) {
  WriteLabels({0, 4});
  EXPECT_THAT(Scorer()->FitTo({.height = 1, .width = 2, .classes = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("label 4"), HasSubstr("0 to 2"))));
}

TEST_F(CheckpointScorerTest, JobWithoutATestSetIsRefused) {
  EXPECT_THAT(CheckpointScorer::Make({}, *backend_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("data.test_images")));
}

}  // namespace
}  // namespace lockstep::worker
