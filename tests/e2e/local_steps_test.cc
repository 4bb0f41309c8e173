// Local steps: workers make several steps between two exchanges.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
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

using ::testing::HasSubstr;

// Enough to kill a worker meanwhile.
constexpr int64_t kSteps = 120;

// The outer rule of DiLoCo over workers that make steps of Adam.
std::vector<std::string> DiLoCo() {
  return {"local_steps=4",
          "local.optimizer.kind=ADAM",
          "local.learning_rate=0.002",
          "optimizer.kind=SGD",
          "optimizer.momentum=0.9",
          "optimizer.use_nesterov=true",
          "learning_rate=0.7",
          absl::StrCat("train_steps=", kSteps)};
}

std::map<std::string, std::vector<float>> ValuesOf(const TrainingJob& job) {
  std::map<std::string, std::vector<float>> values;
  const CheckpointStore store(job.checkpoints());
  auto checkpoint = store.OpenLatest();
  EXPECT_THAT(checkpoint.status(), IsOk());
  if (!checkpoint.ok()) return values;
  const SafetensorsReader& model = checkpoint->model();
  for (const StoredTensor& tensor : model.header().tensors) {
    std::vector<char> bytes(tensor.bytes);
    EXPECT_THAT(model.ReadAt(tensor.name, 0, absl::MakeSpan(bytes)), IsOk());
    std::vector<float>& floats = values[tensor.name];
    floats.resize(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
  }
  return values;
}

// A worker alone whose changes are applied as they are makes the steps of
// ordinary training with the same batches.
TEST(LocalStepsTest, StepsOfOneWorkerAreThoseOfOrdinaryTraining) {
  auto local =
      TrainingJob::Make({.workers = 1,
                         .set = {"local_steps=4", "local.learning_rate=0.05",
                                 "optimizer.kind=GRADIENT_DESCENT",
                                 "train_steps=20", "learning_rate=1"}});
  ASSERT_THAT(local->Run(), IsOk());
  auto ordinary =
      TrainingJob::Make({.workers = 1,
                         .set = {"optimizer.kind=GRADIENT_DESCENT",
                                 "train_steps=80", "learning_rate=0.05"}});
  ASSERT_THAT(ordinary->Run(), IsOk());

  const auto one = ValuesOf(*local);
  const auto other = ValuesOf(*ordinary);
  ASSERT_EQ(one.size(), other.size());
  ASSERT_FALSE(one.empty());
  double moved = 0;
  for (const auto& [name, values] : one) {
    const std::vector<float>& wanted = other.at(name);
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], wanted[i], 1e-5) << name << " " << i;
      moved = std::max(moved, std::abs(static_cast<double>(values[i])));
    }
  }
  EXPECT_GT(moved, 0.01);
}

TEST(LocalStepsTest, RuleOfSomeVariablesIsThatOfTheirLocalStepsAlone) {
  const std::vector<std::string> set = {
      "local_steps=4", "local.learning_rate=0.05",
      "optimizer.kind=GRADIENT_DESCENT", "train_steps=20", "learning_rate=1"};
  auto all = TrainingJob::Make({.workers = 1, .set = set});
  ASSERT_THAT(all->Run(), IsOk());
  auto own = TrainingJob::Make(
      {.workers = 1,
       .set = set,
       .more_job =
           "variable_optimizers { variables: '*bias' learning_rate: 0.05 }"});
  ASSERT_THAT(own->Run(), IsOk());
  ExpectSameBits(all->checkpoints(), own->checkpoints(), 20);
}

TEST(LocalStepsTest, WorkerThatIsKilledLeavesTheSameBits) {
  auto undisturbed = TrainingJob::Make({.set = DiLoCo()});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = TrainingJob::Make({.set = DiLoCo()});
  ASSERT_THAT(job->StartAll(), IsOk());
  for (const int64_t step : {5, 15, 25}) {
    ASSERT_THAT(job->WaitForStep(step), IsOk());
    ASSERT_THAT(job->cluster().Kill("worker", 0), IsOk());
    ASSERT_THAT(job->cluster().Start("worker", 0), IsOk());
  }
  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
}

TEST(LocalStepsTest, MirrorsMakeThemWithTheSameBits) {
  auto servers = TrainingJob::Make({.set = DiLoCo()});
  ASSERT_THAT(servers->Run(), IsOk());
  std::vector<std::string> set = DiLoCo();
  set.push_back("strategy.kind=MULTI_WORKER_MIRRORED");
  // The chief computes, too.
  auto mirrors = TrainingJob::Make({.servers = 0, .workers = 1, .set = set});
  ASSERT_THAT(mirrors->Run(), IsOk());
  ExpectSameBits(servers->checkpoints(), mirrors->checkpoints(), kSteps);
}

TEST(LocalStepsTest, ChiefRefusesThemForAModelWithTables) {
  std::vector<std::string> set = DiLoCo();
  set.insert(set.end(),
             {"model.kind=logistic_regression",
              "model.hidden_units=", "data.train_images=", "data.train_labels=",
              "data.test_images=", "data.test_labels=", "model.features=100",
              "data.train_files=/nowhere"});
  auto job = TrainingJob::Make({.set = set});
  ASSERT_THAT(job->cluster().Start("chief", 0), IsOk());
  const auto end = job->cluster().Wait("chief", 0, kPatience);
  ASSERT_THAT(end, IsOk());
  EXPECT_FALSE(end->ok());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr(
                  "data.train_files is /nowhere, but local_steps is 4")));
}

}  // namespace
}  // namespace lockstep::testing
