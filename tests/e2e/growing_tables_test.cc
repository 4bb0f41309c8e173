// Growing tables: servers are killed, jobs resume from checkpoints, and the
// limit is reached.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kSteps = 400;
constexpr int64_t kBatch = 10;
// The batches of two workers in all steps: one epoch.
constexpr int64_t kExamples = 2 * kSteps * kBatch;

// Each example has one common feature, whose sign is the label, and one feature
// of its own, so that the table grows until the end. The feature numbers are
// large and have gaps.
std::string WriteExamples(const TempDir& directory) {
  std::ofstream file(directory.Join("train.libsvm"));
  uint64_t state = 1;
  for (int64_t example = 0; example < kExamples; ++example) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t common = (state >> 33) % 100;
    file << (common % 2 == 0 ? "+1 " : "-1 ") << 7'000'000'000'007 * common + 1
         << ":1 " << 1'000'000'000'000'000 + example * 12'345'678'901
         << ":0.25\n";
  }
  return directory.Join("train.libsvm");
}

// Examples whose features occur in no other example, near the largest number
// that a file may contain.
constexpr int64_t kWideBatch = 500;
constexpr int64_t kWideFeatures = 300;

std::string WriteWideExamples(const TempDir& directory, int64_t examples) {
  std::ofstream file(directory.Join("wide.libsvm"));
  int64_t feature = int64_t{1} << 62;
  for (int64_t example = 0; example < examples; ++example) {
    file << (example % 2 == 0 ? "+1" : "-1");
    for (int64_t i = 0; i < kWideFeatures; ++i)
      file << ' ' << ++feature << ":1";
    file << '\n';
  }
  return directory.Join("wide.libsvm");
}

class GrowingTablesTest : public ::testing::Test {
 protected:
  GrowingTablesTest() : examples_(WriteExamples(data_)) {}

  std::vector<std::string> Regression(int64_t steps = kSteps,
                                      int64_t row_limit = 10'000) const {
    return {"model.kind=logistic_regression",
            "model.hidden_units=",
            absl::StrCat("model.row_limit=", row_limit),
            "data.train_images=",
            "data.train_labels=",
            "data.test_images=",
            "data.test_labels=",
            absl::StrCat("data.train_files=", examples_),
            "optimizer.kind=FTRL",
            absl::StrCat("batch_size=", kBatch),
            absl::StrCat("train_steps=", steps)};
  }
  static absl::StatusOr<std::vector<int64_t>> Keys(
      const std::string& checkpoints, int64_t step) {
    const auto checkpoint = CheckpointStore(checkpoints).Open(step);
    if (!checkpoint.ok()) return checkpoint.status();
    return checkpoint->ReadKeys("weights");
  }

  const TempDir data_;
  const std::string examples_;
};

TEST_F(GrowingTablesTest, BitsAreTheSameForAnyServersAndAfterARestore) {
  auto whole = TrainingJob::Make({.set = Regression(120)});
  auto half = TrainingJob::Make({.set = Regression(60)});
  ASSERT_THAT(whole->Run(), IsOk());
  ASSERT_THAT(half->Run(), IsOk());
  // Rows of every example so far, and no rows that were only read.
  EXPECT_THAT(Keys(half->checkpoints(), 60),
              IsOkAndHolds(SizeIs(2 * 60 * kBatch + 100)));
  EXPECT_THAT(Keys(whole->checkpoints(), 120),
              IsOkAndHolds(SizeIs(2 * 120 * kBatch + 100)));
  for (int servers : {1, 3}) {
    const TempDir copy;
    std::filesystem::copy(half->checkpoints(), copy.path(),
                          std::filesystem::copy_options::recursive);
    auto rest = TrainingJob::Make({.servers = servers,
                                   .set = Regression(120),
                                   .checkpoints = copy.path()});
    ASSERT_THAT(rest->Run(), IsOk());
    EXPECT_THAT(
        rest->cluster().ReadLog("chief", 0),
        IsOkAndHolds(HasSubstr("resumed from the checkpoint of step 60 ")));
    ExpectSameBits(whole->checkpoints(), copy.path(), 120);
  }
}

// A batch of one worker has 150,000 rows; the only server has 300,000 after the
// first step.
TEST_F(GrowingTablesTest, ManyRowsOfLargeKeysComeBackFromACheckpoint) {
  const std::string wide = WriteWideExamples(data_, 4 * kWideBatch);
  const auto regression = [&](int64_t steps) {
    std::vector<std::string> set = Regression(steps, 700'000);
    set.push_back("data.train_files=" + wide);
    set.push_back(absl::StrCat("batch_size=", kWideBatch));
    return set;
  };
  auto whole = TrainingJob::Make({.servers = 1, .set = regression(2)});
  auto half = TrainingJob::Make({.servers = 1, .set = regression(1)});
  ASSERT_THAT(whole->Run(), IsOk());
  ASSERT_THAT(half->Run(), IsOk());
  EXPECT_THAT(Keys(half->checkpoints(), 1),
              IsOkAndHolds(SizeIs(2 * kWideBatch * kWideFeatures)));
  for (int servers : {1, 3}) {
    const TempDir copy;
    std::filesystem::copy(half->checkpoints(), copy.path(),
                          std::filesystem::copy_options::recursive);
    auto rest = TrainingJob::Make(
        {.servers = servers, .set = regression(2), .checkpoints = copy.path()});
    ASSERT_THAT(rest->Run(), IsOk());
    EXPECT_THAT(
        rest->cluster().ReadLog("chief", 0),
        IsOkAndHolds(HasSubstr("resumed from the checkpoint of step 1 ")));
    ExpectSameBits(whole->checkpoints(), copy.path(), 2);
  }
}

TEST_F(GrowingTablesTest, KilledServersHaveTheSameRows) {
  auto undisturbed = TrainingJob::Make({.set = Regression()});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.set = Regression()});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (int kill = 0; kill < 4; ++kill) {
    ASSERT_THAT(job->WaitForStep(20 + 60 * kill), IsOk());
    ASSERT_THAT(job->cluster().Kill("ps", kill % 2), IsOk());
    ASSERT_THAT(job->cluster().Start("ps", kill % 2), IsOk());
  }

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(" 0 committed steps repeated")));
  EXPECT_THAT(job->StateFiles(), ::testing::IsEmpty());
}

TEST_F(GrowingTablesTest, AServerWithoutItsStateHasTheRowsOfTheCheckpoint) {
  std::vector<std::string> set = Regression();
  set.push_back("checkpoint.every_steps=30");
  auto undisturbed = TrainingJob::Make({.set = set});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.set = set});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
      IsOk());
  ASSERT_THAT(job->WaitForStep(50), IsOk());
  ASSERT_THAT(job->cluster().Kill("ps", 1), IsOk());
  std::filesystem::remove_all(job->state_directory());
  ASSERT_THAT(job->cluster().Start("ps", 1), IsOk());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("ps 1 has lost its state: all servers go "
                                     "back to the checkpoint of step ")));
}

TEST_F(GrowingTablesTest, AFullTableEndsAllTasksWithTheReason) {
  auto job = TrainingJob::Make({.set = Regression(kSteps, 2000)});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    const auto exit = job->cluster().Wait(name, index, kPatience);
    ASSERT_THAT(exit, IsOk());
    EXPECT_EQ(exit->signal, 0) << name << " " << index;
    EXPECT_EQ(exit->code, 1) << name << " " << index;
    EXPECT_THAT(job->cluster().ReadLog(name, index),
                IsOkAndHolds(AllOf(HasSubstr("no room for more rows"),
                                   HasSubstr("\"weights\" grows to 2000"),
                                   HasSubstr("raise model.row_limit"))))
        << name << " " << index;
  }
}

TEST_F(GrowingTablesTest, AJobGoesOnFromACheckpointWithALargerLimit) {
  auto whole = TrainingJob::Make({.set = Regression(120)});
  ASSERT_THAT(whole->Run(), IsOk());
  std::vector<std::string> set = Regression(120, 2000);
  set.push_back("checkpoint.every_steps=20");
  auto full = TrainingJob::Make({.set = set});
  ASSERT_THAT(full->StartAll(), IsOk());
  ASSERT_THAT(full->cluster().Wait("chief", 0, kPatience), IsOk());
  const TempDir copy;
  std::filesystem::copy(full->checkpoints(), copy.path(),
                        std::filesystem::copy_options::recursive);

  auto rest = TrainingJob::Make(
      {.set = Regression(120, 5000), .checkpoints = copy.path()});
  ASSERT_THAT(rest->Run(), IsOk());
  EXPECT_THAT(rest->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("resumed from the checkpoint of step ")));
  ExpectSameBits(whole->checkpoints(), copy.path(), 120);
}

TEST_F(GrowingTablesTest, RowsAreScoredByTheirKeysAndExportedWithThem) {
  std::vector<std::string> set = Regression();
  set.push_back(absl::StrCat("data.test_files=", examples_));
  auto job = TrainingJob::Make({.evaluator = true, .set = set});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(
      job->cluster().ReadLog("evaluator", 0),
      IsOkAndHolds(ContainsRegex("step 400: accuracy .*AUC (0\\.9|1\\.0)")));

  const std::string out = data_.Join("model.safetensors");
  ASSERT_EQ(system(absl::StrCat(
                       LOCKSTEP_BIN_DIR "/lockstep export --variables weights ",
                       "--checkpoints ", job->checkpoints(), " --out ", out)
                       .c_str()),
            0);
  const auto file = SafetensorsReader::Open(out);
  ASSERT_THAT(file, IsOk());
  ASSERT_NE(file->Find("weights/keys"), nullptr);
  EXPECT_THAT(file->Find("weights/keys")->shape, Each(Gt(kExamples)));
  EXPECT_EQ(file->Find("weights/keys")->shape[0],
            file->Find("weights")->shape[0]);
}

// The vocabulary numbers the words.
TEST_F(GrowingTablesTest, WordsOfTablesThatGrowHaveNeighbours) {
  std::ofstream text(data_.Join("text"));
  for (int line = 0; line < 300; ++line) {
    text << "the king of the land and the queen of the sea sing "
         << "word" << static_cast<char>('a' + line % 20) << " of old\n";
  }
  text.close();
  auto job = TrainingJob::Make(
      {.set = {"model.kind=skip_gram", "model.hidden_units=",
               "model.embedding_dim=8", "model.row_limit=200",
               "data.train_images=", "data.train_labels=", "data.test_images=",
               "data.test_labels=", "optimizer.kind=ADAGRAD",
               "data.train_files=" + data_.Join("text")}});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_EQ(system(absl::StrCat(LOCKSTEP_BIN_DIR "/lockstep nearest --text ",
                                data_.Join("text"), " --checkpoints ",
                                job->checkpoints(), " --word king")
                       .c_str()),
            0);
}

TEST_F(GrowingTablesTest, UpdateOfEveryRowIsRefusedAtTheStart) {
  for (const char* setting :
       {"optimizer.kind=ADAM", "mode=COMPATIBLE", "moving_average.decay=0.9"}) {
    std::vector<std::string> set = Regression();
    set.push_back(setting);
    auto job = TrainingJob::Make({.set = set});
    ASSERT_THAT(job->StartAll(), IsOk());
    const auto exit = job->cluster().Wait("chief", 0, kPatience);
    ASSERT_THAT(exit, IsOk());
    EXPECT_NE(exit->code, 0);
    EXPECT_THAT(job->cluster().ReadLog("chief", 0),
                IsOkAndHolds(HasSubstr("table \"weights\" grows")))
        << setting;
  }
}

}  // namespace
}  // namespace lockstep::testing
