// Shared steps: the bits of a job do not depend on the number of its workers,
// on their speed or on their deaths.

#include <signal.h>

#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kSteps = 60;

std::vector<std::string> Shared(std::vector<std::string> more = {}) {
  std::vector<std::string> set = {"work=SHARED", "micro_batches_per_step=8",
                                  "batch_size=64",
                                  absl::StrCat("train_steps=", kSteps)};
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

struct Recipe {
  std::string name;
  std::vector<std::string> set;
};

const Recipe kRecipes[] = {
    {"MomentumMlp", {}},
    // Gradients that are clipped one by one.
    {"ClippedAdam",
     {"optimizer.kind=ADAM", "clipping.kind=GLOBAL_NORM",
      "clipping.limit=0.5"}},
    // Dropout draws numbers, which must not be a worker's own.
    {"TransformerWithDropout",
     {"model.kind=transformer", "model.hidden_units=", "model.layers=1",
      "model.heads=2", "model.width=8", "model.dropout=0.2",
      "data.train_images=", "data.train_labels=", "data.test_images=",
      "data.test_labels=", "data.sequence_length=16"}},
    // Means of the normalisation are averaged over the numbers.
    {"ResidualWithMeans",
     {"model.kind=resnet", "model.hidden_units=", "model.conv_filters=4",
      "model.layers=1"}},
};

// A text for the recipes that read one.
std::string WriteText(const TempDir& directory) {
  std::string text;
  uint64_t state = 1;
  for (int i = 0; i < 40000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += static_cast<char>('a' + (state >> 33) % 16);
  }
  const std::string path = directory.Join("train.txt");
  std::ofstream(path) << text;
  return path;
}

class SharedStepsTest : public ::testing::TestWithParam<Recipe> {
 protected:
  std::vector<std::string> Settings() const {
    std::vector<std::string> set = Shared(GetParam().set);
    if (absl::StrContains(GetParam().name, "Transformer")) {
      set.push_back("data.train_text=" + text_);
    }
    return set;
  }

 private:
  const TempDir data_;
  const std::string text_ = WriteText(data_);
};

TEST_P(SharedStepsTest, AnyNumberOfWorkersAndServersGivesTheSameBits) {
  auto alone = TrainingJob::Make({.workers = 1, .set = Settings()});
  ASSERT_THAT(alone->Run(), IsOk());
  for (const auto& [workers, servers] : {std::pair{2, 2}, std::pair{7, 1}}) {
    auto job = TrainingJob::Make(
        {.servers = servers, .workers = workers, .set = Settings()});
    ASSERT_THAT(job->Run(), IsOk());
    ExpectSameBits(alone->checkpoints(), job->checkpoints(), kSteps);
  }
}

// 60 steps of passes that are short beside their pushes; the chief's choice
// changes in the midst of them.
TEST_P(SharedStepsTest, AnyNumberOfMicroBatchesInAPushGivesTheSameBits) {
  std::vector<std::string> set = Settings();
  set.push_back("micro_batches_per_push=1");
  auto one_by_one = TrainingJob::Make({.workers = 1, .set = set});
  ASSERT_THAT(one_by_one->Run(), IsOk());
  for (const auto& [workers, servers, per_push] :
       {std::tuple{1, 1, 8}, {1, 2, 2}, {3, 2, 4}, {2, 1, 0}}) {
    set.back() = absl::StrCat("micro_batches_per_push=", per_push);
    auto job =
        TrainingJob::Make({.servers = servers, .workers = workers, .set = set});
    ASSERT_THAT(job->Run(), IsOk());
    ExpectSameBits(one_by_one->checkpoints(), job->checkpoints(), kSteps);
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, SharedStepsTest,
                         ::testing::ValuesIn(kRecipes),
                         [](const auto& info) { return info.param.name; });

// `step.share` of a user's program is the number.
TEST(SharedStepsProgramTest, UsersProgramsComputeTheNumbersOfAnyWorker) {
  TrainingJob::Options options;
  options.worker_program = {ProgramPath("session_worker"), {"--by_share"}};
  options.set = Shared({"model.kind=external",
                        "model.hidden_units=", "learning_rate=0.01",
                        "optimizer.kind=ADAM_TORCH", "max_part_bytes=64"});
  options.workers = 1;
  auto alone = TrainingJob::Make(options);
  ASSERT_THAT(alone->Run(), IsOk());
  options.workers = 3;
  auto job = TrainingJob::Make(options);
  ASSERT_THAT(job->Run(), IsOk());

  ExpectSameBits(alone->checkpoints(), job->checkpoints(), kSteps);

  // The session adds up what a program hands in, or leaves out.
  options.set.push_back("micro_batches_per_push=4");
  auto blocks = TrainingJob::Make(options);
  ASSERT_THAT(blocks->Run(), IsOk());
  ExpectSameBits(alone->checkpoints(), blocks->checkpoints(), kSteps);
}

// Pushes of a large gradient beside passes of a few examples.
TEST(SharedStepsBlockTest, ChiefsChoiceChangesNoBits) {
  const auto with = [](const std::string& per_push) {
    return Shared({"model.hidden_units=512", "batch_size=16", per_push,
                   "max_part_bytes=65536", "heartbeat_interval=20ms",
                   "train_steps=120"});
  };
  auto fixed = TrainingJob::Make(
      {.workers = 1, .set = with("micro_batches_per_push=1")});
  ASSERT_THAT(fixed->Run(), IsOk());
  auto chosen = TrainingJob::Make(
      {.workers = 2, .set = with("micro_batches_per_push=0")});
  ASSERT_THAT(chosen->Run(), IsOk());
  ExpectSameBits(fixed->checkpoints(), chosen->checkpoints(), 120);
  EXPECT_THAT(
      chosen->cluster().ReadLog("chief", 0),
      IsOkAndHolds(AllOf(HasSubstr("micro-batches instead of 1: a push"),
                         HasSubstr("micro_batches_per_push 1 -> "))));
}

// Numbers that do not fill the last block.
TEST(SharedStepsBlockTest, DeathsInTheMidstOfBlocksChangeNoBits) {
  const std::vector<std::string> set =
      Shared({"micro_batches_per_step=7", "batch_size=63", "lease=3s"});
  const auto with = [&](int per_push) {
    std::vector<std::string> all = set;
    all.push_back(absl::StrCat("micro_batches_per_push=", per_push));
    return all;
  };
  auto alone = TrainingJob::Make({.workers = 1, .set = with(1)});
  ASSERT_THAT(alone->Run(), IsOk());
  for (const int per_push : {2, 4}) {
    auto job =
        TrainingJob::Make({.servers = 2, .workers = 2, .set = with(per_push)});
    ASSERT_THAT(job->StartAll(), IsOk());
    for (const auto& [task, step] :
         {std::pair{"worker", 4}, {"ps", 12}, {"chief", 20}, {"worker", 28}}) {
      ASSERT_THAT(job->WaitForStep(step), IsOk());
      ASSERT_THAT(job->cluster().Kill(task, 0), IsOk());
      ASSERT_THAT(job->cluster().Start(task, 0), IsOk());
    }
    EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
    ExpectSameBits(alone->checkpoints(), job->checkpoints(), kSteps);
  }
}

// Nothing but the other worker can make the numbers of one that stands still:
// no lease ends here.
TEST(SharedStepsStallTest, WorkerThatHangsCostsOneMicroBatch) {
  const std::vector<std::string> set = Shared({"lease=1h"});
  auto alone = TrainingJob::Make({.workers = 1, .set = set});
  ASSERT_THAT(alone->Run(), IsOk());
  auto job = TrainingJob::Make({.workers = 2, .set = set});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Signal("worker", 0, SIGSTOP), IsOk());
  ASSERT_THAT(job->WaitForStep(kSteps - 5), IsOk());
  ASSERT_THAT(job->cluster().Signal("worker", 0, SIGCONT), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(alone->checkpoints(), job->checkpoints(), kSteps);
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(Not(HasSubstr("worker 0 is gone"))));
}

TEST(SharedStepsRefusalTest, ChiefNamesTheFieldAndTheFix) {
  auto job = TrainingJob::Make({.set = Shared({"micro_batches_per_step=7"})});
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());

  const auto end = job->cluster().Wait("chief", 0, kPatience);

  ASSERT_THAT(end, IsOk());
  EXPECT_FALSE(end->ok());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("micro_batches_per_step is 7, but must be "
                                     "a divisor of batch_size, 64")));
}

}  // namespace
}  // namespace lockstep::testing
