// An evaluator whose test set differs in shape from the training set, or is
// missing, and the evaluator's health service.

#include "absl/strings/str_cat.h"
#include "common/rpc/own_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs a job whose test set has `count` pictures of `height` x 8 pixels, all of
// one class.
class EvaluatorTest : public ::testing::Test {
 protected:
  std::unique_ptr<TrainingJob> Make(uint32_t height, uint8_t label,
                                    std::vector<std::string> set = {}) {
    constexpr uint32_t kCount = 20;
    WriteFile(directory_.Join("images"),
              IdxBytes({kCount, height, 8}, Bytes(kCount * height * 8, 7)));
    WriteFile(directory_.Join("labels"),
              IdxBytes({kCount}, Bytes(kCount, label)));
    set.insert(set.end(),
               {"train_steps=100",
                absl::StrCat("data.test_images=", directory_.Join("images")),
                absl::StrCat("data.test_labels=", directory_.Join("labels"))});
    return TrainingJob::Make({.evaluator = true, .set = set});
  }

  const TempDir directory_;
};

TEST_F(EvaluatorTest, TestSetWithoutTheHighestClassIsScored) {
  auto job = Make(8, 3);
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(AllOf(ContainsRegex("step 100: accuracy"),
                                 Not(HasSubstr("no score")))));
}

// The job ends without a score, and the evaluator reported the reason before
// the last step.
TEST_F(EvaluatorTest, TestSetOfAnotherShapeIsToldAndTheJobEnds) {
  auto job = Make(7, 3);
  ASSERT_THAT(job->StartAll(), IsOk());
  EXPECT_THAT(job->cluster().Wait("evaluator", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 1)));
  EXPECT_THAT(job->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 0)));
  for (const char* task : {"evaluator", "chief"}) {
    EXPECT_THAT(job->cluster().ReadLog(task, 0),
                IsOkAndHolds(AllOf(HasSubstr("7x8x1"), HasSubstr("8x8x1"))))
        << task;
  }
}

TEST_F(EvaluatorTest, LabelBeyondTheClassesOfTheJobIsToldBeforeTheFirstStep) {
  auto job = Make(8, 255, {"data.classes=10"});
  ASSERT_THAT(job->StartAll(), IsOk());
  EXPECT_THAT(job->cluster().Wait("evaluator", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 1)));
  EXPECT_THAT(job->cluster().WaitForLog("chief", 0, "label 255 of example 0",
                                        kPatience),
              IsOk());
}

TEST_F(EvaluatorTest, MissingTestSetIsToldToTheChief) {
  auto job = TrainingJob::Make(
      {.evaluator = true,
       .set = {"train_steps=100",
               absl::StrCat("data.test_images=", directory_.Join("none"))}});
  ASSERT_THAT(job->StartAll(), IsOk());
  EXPECT_THAT(
      job->cluster().WaitForLog("chief", 0, directory_.Join("none"), kPatience),
      IsOk());
  EXPECT_THAT(job->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 0)));
}

// The evaluator may be the first process to start, and to end.
TEST_F(EvaluatorTest, EvaluatorThatFailsBeforeServersAreThereFailsNothing) {
  auto job = TrainingJob::Make(
      {.evaluator = true,
       .set = {"train_steps=100",
               absl::StrCat("data.test_images=", directory_.Join("none"))}});
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  ASSERT_THAT(job->cluster().Start("evaluator", 0), IsOk());
  EXPECT_THAT(job->cluster().Wait("evaluator", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 1)));
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, directory_.Join("none"), kPatience),
      IsOk());
  for (const auto& [task, index] : job->Tasks()) {
    if (task != "chief" && task != "evaluator") {
      ASSERT_THAT(job->cluster().Start(task, index), IsOk());
    }
  }
  EXPECT_THAT(job->cluster().Wait("chief", 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 0)));
}

TEST_F(EvaluatorTest, JobWithoutATestSetSaysAtTheStartThatNothingIsScored) {
  auto job = TrainingJob::Make(
      {.evaluator = true,
       .set = {"train_steps=5", "data.test_images=", "data.test_labels="}});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("evaluator 0 has nothing to score: the "
                                     "job has no test set in data")));
}

TEST_F(EvaluatorTest, EvaluatorServesItsHealth) {
  auto job =
      TrainingJob::Make({.evaluator = true, .set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("evaluator", 0, "registered with", kPatience),
      IsOk());
  EXPECT_THAT(
      CheckOwnServer(job->cluster().Address("evaluator", 0).value(), kPatience),
      IsOk());
}

// Expects the first task of a type to refuse the job's data.
void ExpectOutsideOfTheDataRoot(TrainingJob& job, const std::string& task) {
  EXPECT_THAT(job.cluster().Wait(task, 0, kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 1)));
  EXPECT_THAT(job.cluster().ReadLog(task, 0),
              IsOkAndHolds(HasSubstr("is not below --data_root")));
}

TEST_F(EvaluatorTest, DataOutsideOfTheDataRootIsRefused) {
  auto job = TrainingJob::Make({.evaluator = true, .set = {"train_steps=100"}});
  for (const auto& [task, index] :
       {std::pair("worker", 0), {"worker", 1}, {"evaluator", 0}}) {
    job->cluster().AddArgument(task, index, "--data_root=" + directory_.path());
  }
  // The evaluator first: the workers' failure ends the job, and its chief waits
  // for no evaluator that comes later.
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  ASSERT_THAT(job->cluster().Start("evaluator", 0), IsOk());
  ASSERT_NO_FATAL_FAILURE(ExpectOutsideOfTheDataRoot(*job, "evaluator"));
  for (const auto& [task, index] : job->Tasks()) {
    if (task != "chief" && task != "evaluator") {
      ASSERT_THAT(job->cluster().Start(task, index), IsOk());
    }
  }
  ASSERT_NO_FATAL_FAILURE(ExpectOutsideOfTheDataRoot(*job, "worker"));
}

}  // namespace
}  // namespace lockstep::testing
