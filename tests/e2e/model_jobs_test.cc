// Small jobs with deep models, through all processes.

#include <stdio.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the output of a command; a failure fails the test.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = getc(pipe); c != EOF; c = getc(pipe)) {
    output.push_back(static_cast<char>(c));
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST(ModelJobsTest, LanguageModelIsScoredAndWritesOn) {
  const TempDir directory;
  const std::string sentence = "a quick fox. ";
  std::ofstream text(directory.Join("text"));
  for (int i = 0; i < 400; ++i) text << sentence;
  text.close();
  auto job = TrainingJob::Make(
      {.evaluator = true,
       .set = {"model.kind=transformer",
               "model.hidden_units=", "model.layers=1", "model.heads=2",
               "model.width=32", "model.dropout=0.02", "data.train_images=",
               "data.train_labels=", "data.test_images=", "data.test_labels=",
               absl::StrCat("data.train_text=", directory.Join("text")),
               absl::StrCat("data.test_text=", directory.Join("text")),
               "data.sequence_length=26", "optimizer.kind=ADAM",
               "learning_rate=0.01", "batch_size=4", "micro_batches=2",
               "train_steps=200"}});
  ASSERT_THAT(job->Run(), IsOk());

  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex("step 200: accuracy (0.9|1.0)")));
  EXPECT_EQ(
      OutputOf(absl::StrCat(
          LOCKSTEP_BIN_DIR "/lockstep sample --job ", job->job_file(),
          " --set model.kind=transformer --set model.hidden_units=",
          " --set model.layers=1 --set model.heads=2",
          " --set model.width=32 --set data.sequence_length=26",
          " --set data.train_images= --set data.train_labels=",
          " --set data.test_images= --set data.test_labels=",
          " --set data.train_text=text --checkpoints ", job->checkpoints(),
          " --temperature 0 --bytes 9", " --prompt 'a quick fox. a qu'")),
      "a quick fox. a quick fox. \n");
}

TEST(ModelJobsTest, ResidualNetworkSharesItsMovingStatistics) {
  auto job =
      TrainingJob::Make({.evaluator = true,
                         .set = {"model.kind=resnet",
                                 "model.hidden_units=", "model.conv_filters=4",
                                 "model.layers=1", "train_steps=300"}});
  ASSERT_THAT(job->Run(), IsOk());

  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex("step 300: accuracy (0.9|1.0)")));
}

// The type's name in a job and in a checkpoint.
class VariableTypeTest
    : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};
INSTANTIATE_TEST_SUITE_P(All, VariableTypeTest,
                         ::testing::Values(std::pair("float16", "F16"),
                                           std::pair("bfloat16", "BF16")),
                         [](const auto& info) { return info.param.first; });

TEST_P(VariableTypeTest, NetworkIsTrainedGoesOnAndIsScored) {
  const auto& [type, stored] = GetParam();
  const TempDir checkpoints;
  for (const char* steps : {"100", "200"}) {
    auto job = TrainingJob::Make(
        {.workers = 3,
         .evaluator = true,
         .set = {absl::StrCat("model.variable_type=", type),
                 absl::StrCat("train_steps=", steps), "replicas_to_aggregate=2",
                 "clipping.kind=GLOBAL_NORM", "clipping.limit=5"},
         .checkpoints = checkpoints.path()});
    ASSERT_THAT(job->Run(), IsOk());
    EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
                IsOkAndHolds(ContainsRegex(
                    absl::StrCat("step ", steps, ": accuracy (0.9|1.0)"))));
  }
  const std::string file =
      ReadCheckpoint(checkpoints.path(), 200, "model.safetensors");
  EXPECT_THAT(file, HasSubstr(absl::StrCat("\"", stored, "\"")));
  EXPECT_THAT(file, Not(HasSubstr("\"F32\"")));
}

}  // namespace
}  // namespace lockstep::testing
