// The modes and settings of a job, each from start to end.

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/format/safetensors_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The evaluator's log line for a trained model.
constexpr char kLearned[] = "step 200: accuracy (0\\.9[0-9]|1)";

void ExpectTrains(TrainingJob::Options options) {
  options.evaluator = true;
  options.set.push_back("train_steps=200");
  auto job = TrainingJob::Make(options);

  ASSERT_THAT(job->Run(), IsOk());

  EXPECT_THAT(CheckpointStore(job->checkpoints()).Verify(200), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex(kLearned)));
  EXPECT_THAT(job->StateFiles(), IsEmpty());
}

TEST(ModesTest, CompatibleModeWithABackupTrains) {
  ExpectTrains(
      {.workers = 3, .set = {"mode=COMPATIBLE", "replicas_to_aggregate=2"}});
}

TEST(ModesTest, CompatibleModeWithMoreGradientsThanWorkersTrains) {
  ExpectTrains(
      {.workers = 2, .set = {"mode=COMPATIBLE", "replicas_to_aggregate=3"}});
}

TEST(ModesTest, StrictModeWithMoreGradientsThanWorkersTrains) {
  ExpectTrains({.workers = 2, .set = {"replicas_to_aggregate=4"}});
}

TEST(ModesTest, StrictModeWithUnequalSharesTrains) {
  ExpectTrains({.workers = 2, .set = {"replicas_to_aggregate=3"}});
}

TEST(ModesTest, BFloat16GradientsTrain) {
  ExpectTrains(
      {.workers = 3,
       .set = {"gradient_wire_type=BFLOAT16", "replicas_to_aggregate=2"}});
}

TEST(ModesTest, BFloat16GradientsOfSharesTrain) {
  ExpectTrains(
      {.workers = 2,
       .set = {"gradient_wire_type=BFLOAT16", "replicas_to_aggregate=3"}});
}

// One optimizer for the hidden layer and another for the rest, moving averages
// that the evaluator scores, and a constraint.
constexpr char kSettingsOfVariables[] = R"(
variable_optimizers {
  variables: "hidden1/*"
  optimizer { kind: ADAGRAD }
  learning_rate: 0.05
}
moving_average { decay: 0.9 count_steps: true }
constraints { variables: "logits/bias" kind: NON_NEGATIVE }
)";

// Expects `lockstep export --averaged` to write the checkpoint's averages.
void ExpectExportsAverages(const TrainingJob& job) {
  const TempDir scratch;
  const std::string out = scratch.Join("out.safetensors");
  const auto ended =
      RunProgram({.program = LOCKSTEP_BIN_DIR "/lockstep",
                  .args = {"export", "--averaged", "--variables", "hidden1/*",
                           "--checkpoints", job.checkpoints(), "--out", out},
                  .log_path = scratch.Join("log")},
                 kPatience);
  ASSERT_THAT(ended, IsOk());
  ASSERT_TRUE(ended->ok());
  const auto file = SafetensorsReader::Open(out);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->header().tensors.size(), 2);  // no slots
  const auto checkpoint = CheckpointStore(job.checkpoints()).Open(200);
  ASSERT_THAT(checkpoint, IsOk());
  std::vector<float> kept(file->Find("hidden1/bias")->bytes / sizeof(float));
  std::vector<float> written(kept.size());
  EXPECT_THAT(checkpoint->Read("hidden1/bias/ExponentialMovingAverage",
                               absl::MakeSpan(kept)),
              IsOk());
  EXPECT_THAT(
      file->ReadAt("hidden1/bias", 0,
                   absl::MakeSpan(reinterpret_cast<char*>(written.data()),
                                  written.size() * sizeof(float))),
      IsOk());
  EXPECT_EQ(written, kept);
}

TEST(ModesTest, VariablesWithSettingsOfTheirOwnTrain) {
  for (const char* mode : {"STRICT", "COMPATIBLE"}) {
    auto job = TrainingJob::Make(
        {.evaluator = true,
         .set = {absl::StrCat("mode=", mode), "train_steps=200"},
         .more_job = kSettingsOfVariables});

    ASSERT_THAT(job->Run(), IsOk());

    EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
                IsOkAndHolds(ContainsRegex(kLearned)));
    const std::string slots =
        ReadCheckpoint(job->checkpoints(), 200, "optimizer.safetensors");
    for (const char* name :
         {"hidden1/weights/Adagrad", "logits/weights/Momentum",
          "hidden1/bias/ExponentialMovingAverage"}) {
      EXPECT_THAT(slots, HasSubstr(absl::StrCat("\"", name, "\"")));
    }
    EXPECT_THAT(slots, Not(HasSubstr("\"hidden1/weights/Momentum\"")));
    ExpectExportsAverages(*job);
  }
}

TEST(ModesTest, AWorkerAloneTrains) {
  ExpectTrains({.servers = 1, .workers = 1});
}

TEST(ModesTest, WithoutAChiefTaskWorkerZeroHostsIt) {
  ExpectTrains({.workers = 2, .chief = false});
}

TEST(ModesTest, MoreServersThanPartsTrain) {
  ExpectTrains({.servers = 4,
                .set = {"model.kind=softmax", "model.hidden_units=",
                        "learning_rate=0.2", "max_part_bytes=1048576"}});
}

TEST(ModesTest, TheJobEndsWithItsInput) {
  // 640 pictures are 10 batches of 32 for each of two workers.
  auto job = TrainingJob::Make(
      {.evaluator = true, .pictures = 640, .set = {"data.epochs=1"}});

  ASSERT_THAT(job->Run(), IsOk());

  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("done at step 10\n")));
  EXPECT_THAT(CheckpointStore(job->checkpoints()).Verify(10), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(HasSubstr("step 10: accuracy")));
}

TEST(ModesTest, AFinishedJobStartedAgainEndsAtOnceAndChangesNothing) {
  auto job = TrainingJob::Make({.set = {"train_steps=50"}});
  ASSERT_THAT(job->Run(), IsOk());
  const std::string before =
      ReadCheckpoint(job->checkpoints(), 50, "model.safetensors");

  EXPECT_THAT(job->Run(), IsOk());

  // The same steps made once more would have the same bits.
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("nothing to do: ")));
  EXPECT_EQ(ReadCheckpoint(job->checkpoints(), 50, "model.safetensors"),
            before);
}

}  // namespace
}  // namespace lockstep::testing
