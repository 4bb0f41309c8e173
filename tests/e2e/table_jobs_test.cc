// Models with tables: single rows travel, and servers hold the rows in parts.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int64_t kHalf = 60;
constexpr int64_t kWhole = 120;

// Two hundred features, some of them in each of a thousand examples; the sign
// of the smallest feature is the label.
std::string WriteExamples(const TempDir& directory) {
  std::ofstream file(directory.Join("train.libsvm"));
  uint64_t state = 1;
  const auto draw = [&state](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  for (int example = 0; example < 1000; ++example) {
    const uint64_t first = 1 + draw(100);
    const bool label = first % 2 == 0;
    file << (label ? "+1 " : "-1 ") << first << ":1 " << 101 + draw(50)
         << ":0.5 " << 151 + draw(50) << ":-0.25\n";
  }
  return directory.Join("train.libsvm");
}

class TableJobsTest : public ::testing::Test {
 protected:
  TableJobsTest() : examples_(WriteExamples(data_)) {}

  // Settings of a job over the examples, up to a step.
  std::vector<std::string> Regression(int64_t steps,
                                      const std::string& optimizer = "FTRL",
                                      const std::string& cut = "BY_MOD") const {
    return {"model.kind=logistic_regression",
            "model.hidden_units=",
            "model.features=200",
            absl::StrCat("model.table_cut=", cut),
            "data.train_images=",
            "data.train_labels=",
            "data.test_images=",
            "data.test_labels=",
            absl::StrCat("data.train_files=", examples_),
            absl::StrCat("optimizer.kind=", optimizer),
            absl::StrCat("train_steps=", steps)};
  }

  const TempDir data_;
  const std::string examples_;
};

TEST_F(TableJobsTest, BitsAreTheSameForAnyServersAndAnyCut) {
  for (const char* optimizer : {"FTRL", "ADAM"}) {
    auto whole = TrainingJob::Make({.set = Regression(kWhole, optimizer)});
    auto half = TrainingJob::Make({.set = Regression(kHalf, optimizer)});
    ASSERT_THAT(whole->Run(), IsOk());
    ASSERT_THAT(half->Run(), IsOk());
    for (const auto& [servers, cut] : std::vector<std::pair<int, std::string>>{
             {1, "BY_MOD"}, {3, "BY_MOD"}, {3, "BY_DIV"}}) {
      const TempDir copy;
      std::filesystem::copy(half->checkpoints(), copy.path(),
                            std::filesystem::copy_options::recursive);
      auto rest = TrainingJob::Make({.servers = servers,
                                     .set = Regression(kWhole, optimizer, cut),
                                     .checkpoints = copy.path()});
      ASSERT_THAT(rest->Run(), IsOk());
      EXPECT_THAT(rest->cluster().ReadLog("chief", 0),
                  IsOkAndHolds(HasSubstr(absl::StrCat(
                      "resumed from the checkpoint of step ", kHalf, " "))));
      ExpectSameBits(whole->checkpoints(), copy.path(), kWhole);
    }
  }
}

TEST_F(TableJobsTest, KilledServersGoOnFromTheirRows) {
  auto undisturbed = TrainingJob::Make({.set = Regression(400)});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.set = Regression(400)});
  ASSERT_THAT(job->StartAll(), IsOk());

  for (int kill = 0; kill < 4; ++kill) {
    ASSERT_THAT(job->WaitForStep(20 + 60 * kill), IsOk());
    ASSERT_THAT(job->cluster().Kill("ps", kill % 2), IsOk());
    ASSERT_THAT(job->cluster().Start("ps", kill % 2), IsOk());
  }

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), 400);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(" 0 committed steps repeated")));
}

// Each mirror has all rows; one of them sums the gradients of a row.
TEST_F(TableJobsTest, MirrorsHaveTheBitsOfServersAndRestoreEachOther) {
  std::vector<std::string> set = Regression(400, "ADAM");
  set.push_back("clipping.kind=MEAN_GLOBAL_NORM");
  set.push_back("clipping.limit=0.5");
  auto servers = TrainingJob::Make({.set = set});
  ASSERT_THAT(servers->Run(), IsOk());
  set.push_back("strategy.kind=MULTI_WORKER_MIRRORED");
  auto mirrors = TrainingJob::Make({.servers = 0, .chief = false, .set = set});
  ASSERT_THAT(mirrors->StartAll(), IsOk());

  for (const bool wiped : {false, true}) {
    ASSERT_THAT(mirrors->WaitForStep(wiped ? 150 : 30), IsOk());
    ASSERT_THAT(mirrors->cluster().Kill("worker", 1), IsOk());
    if (wiped) RemoveState(*mirrors, 1);
    ASSERT_THAT(mirrors->cluster().Start("worker", 1), IsOk());
  }

  ASSERT_THAT(mirrors->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(servers->checkpoints(), mirrors->checkpoints(), 400);
  EXPECT_THAT(mirrors->cluster().ReadLog("worker", 0),
              IsOkAndHolds(AllOf(
                  HasSubstr("ps 1 has lost its state: takes the state of step"),
                  HasSubstr(" 0 committed steps repeated"))));
}

TEST_F(TableJobsTest, SharedStepsGiveTheSameBitsOnAnyNumberOfWorkers) {
  // Rows of a fixed table and of one that grows.
  for (const char* rows : {"model.features=200", "model.row_limit=500"}) {
    std::vector<std::string> set = Regression(kWhole, "ADAGRAD");
    set.insert(set.end(),
               {"work=SHARED", "micro_batches_per_step=4", "model.features=0",
                rows, "micro_batches_per_push=1"});
    auto alone = TrainingJob::Make({.workers = 1, .set = set});
    ASSERT_THAT(alone->Run(), IsOk());
    // 0: as the chief chooses while the job runs.
    for (const int per_push : {1, 2, 4, 0}) {
      set.back() = absl::StrCat("micro_batches_per_push=", per_push);
      auto job = TrainingJob::Make({.servers = 3, .workers = 3, .set = set});
      ASSERT_THAT(job->Run(), IsOk());
      ExpectSameBits(alone->checkpoints(), job->checkpoints(), kWhole);
    }
  }
}

TEST_F(TableJobsTest, CompatibleModeSumsRowsAsTheyArrive) {
  std::vector<std::string> set = Regression(kWhole, "ADAGRAD");
  set.push_back("mode=COMPATIBLE");
  set.push_back(absl::StrCat("data.test_files=", examples_));
  auto job = TrainingJob::Make({.evaluator = true, .set = set});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex("accuracy .*AUC (0\\.[89]|1\\.0)")));
}

TEST_F(TableJobsTest, AveragesAreScoredOfRowsThatTravelAsBFloat16) {
  std::vector<std::string> set = Regression(kWhole, "ADAGRAD");
  set.push_back("gradient_wire_type=BFLOAT16");
  set.push_back("moving_average.decay=0.9");
  set.push_back(absl::StrCat("data.test_files=", examples_));
  auto job = TrainingJob::Make({.evaluator = true, .set = set});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex("accuracy 0.*AUC (0\\.[89]|1\\.0)")));
  EXPECT_THAT(
      ReadCheckpoint(job->checkpoints(), kWhole, "optimizer.safetensors"),
      HasSubstr("\"weights/ExponentialMovingAverage\""));
}

// The jobs of deploy/examples/jobs, on every tenth verse.
class BibleJobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (system("command -v bible >/dev/null") != 0) {
      GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: there is no `bible`; "
                      "install bible-kjv and "
                      "bible-kjv-text";
    }
    ASSERT_EQ(
        system(absl::StrCat("bible -f gen1:1-rev22:21 | ",
                            "/usr/bin/python3 " LOCKSTEP_JOBS "/bible_data.py ",
                            "--limit 3100 --directory ", data_.path())
                   .c_str()),
        0);
  }

  std::vector<std::string> Set(const std::string& kind,
                               std::vector<std::string> more) const {
    std::vector<std::string> set = {absl::StrCat("model.kind=", kind),
                                    "model.hidden_units=",
                                    "data.train_images=",
                                    "data.train_labels=",
                                    "data.test_images=",
                                    "data.test_labels=",
                                    "replicas_to_aggregate=2"};
    set.insert(set.end(), more.begin(), more.end());
    return set;
  }

  const TempDir data_;
};

TEST_F(BibleJobsTest, TestamentsAreToldApart) {
  auto job = TrainingJob::Make(
      {.workers = 3,
       .evaluator = true,
       .set = Set(
           "logistic_regression",
           {"model.features=1048576",
            "data.train_files=" + data_.Join("train.libsvm"),
            "data.test_files=" + data_.Join("test.libsvm"),
            "optimizer.kind=FTRL", "optimizer.initial_accumulator_value=0.0001",
            "learning_rate=0.5", "batch_size=100"})});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(ContainsRegex("step 150: .*AUC 0\\.9")));
}

TEST_F(BibleJobsTest, WordsHaveNeighbours) {
  auto job = TrainingJob::Make(
      {.workers = 3,
       .set =
           Set("skip_gram", {"model.embedding_dim=16", "optimizer.kind=ADAGRAD",
                             "data.train_files=" + data_.Join("verses.txt"),
                             "learning_rate=0.2", "batch_size=32"})});
  ASSERT_THAT(job->Run(), IsOk());
  EXPECT_EQ(system(absl::StrCat(LOCKSTEP_BIN_DIR "/lockstep nearest --text ",
                                data_.Join("verses.txt"), " --checkpoints ",
                                job->checkpoints(), " --word moses")
                       .c_str()),
            0);
}

// Returns the number after the last occurrence of `words`.
double NumberAfter(const std::string& text, const std::string& words) {
  const size_t at = text.rfind(words);
  if (at == std::string::npos) {
    ADD_FAILURE() << "no \"" << words << "\" in \"" << text << "\"";
    return 0;
  }
  return std::strtod(text.c_str() + at + words.size(), nullptr);
}

// deploy/examples/jobs/click_wide_and_deep on a fifth of its impressions.
TEST(ClickJobTest, WideAndDeepLearnsWhatTheWidePartCannot) {
  const TempDir data;
  ASSERT_EQ(system(absl::StrCat("/usr/bin/python3 " LOCKSTEP_JOBS
                                "/click_wide_and_deep/click_data.py ",
                                "--train 60000 --test 10000 --directory ",
                                data.path(), " >", data.Join("said"))
                       .c_str()),
            0);
  std::ifstream file(data.Join("said"));
  const std::string said(std::istreambuf_iterator<char>(file), {});
  const double best = NumberAfter(said, "true model on these: ");
  const double wide = NumberAfter(said, "wide part alone: ");

  auto job = TrainingJob::Make(
      {.workers = 3,
       .evaluator = true,
       .set = {"model.kind=wide_and_deep",
               "model.hidden_units=64,32",
               "model.categorical=user,ad,site,device",
               "model.crosses=site*device",
               "model.numeric=hour",
               "model.label=clicked",
               "model.features=65536",
               "model.embedding_rows=65536",
               "model.embedding_dim=8",
               "data.train_images=",
               "data.train_labels=",
               "data.test_images=",
               "data.test_labels=",
               "data.train_files=" + data.Join("train.tfrecord"),
               "data.test_files=" + data.Join("test.tfrecord"),
               "optimizer.kind=ADAGRAD",
               "optimizer.initial_accumulator_value=1e-7",
               "learning_rate=0.1",
               "replicas_to_aggregate=2",
               "batch_size=256",
               "train_steps=800"},
       .more_job = "variable_optimizers { variables: 'wide/*' optimizer { "
                   "kind: FTRL initial_accumulator_value: 0.0001 } }"});
  ASSERT_THAT(job->Run(), IsOk());

  const absl::StatusOr<std::string> log =
      job->cluster().ReadLog("evaluator", 0);
  ASSERT_THAT(log, IsOk());
  const double auc = NumberAfter(*log, "AUC ");
  EXPECT_GT(auc, wide + 0.05);
  EXPECT_GT(auc, best - 0.05);
}

}  // namespace
}  // namespace lockstep::testing
