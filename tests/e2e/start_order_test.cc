// Jobs do not depend on the order of starts, nor on other programs of the
// machine.

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::IsEmpty;

enum class Order { kChiefLast, kServersLast };

// Starts the tasks of a job, the last ones after a pause, and runs it to its
// end.
void RunInOrder(Order order, absl::Duration pause) {
  auto job = TrainingJob::Make({.evaluator = true});
  std::vector<std::pair<std::string, int>> tasks = job->Tasks();
  const std::string last = order == Order::kChiefLast ? "chief" : "ps";
  const auto pause_before = std::stable_partition(
      tasks.begin(), tasks.end(),
      [&](const auto& task) { return task.first != last; });
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    if (task == pause_before) absl::SleepFor(pause);
    ASSERT_THAT(job->cluster().Start(task->first, task->second), IsOk());
  }

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST(StartOrderTest, TheChiefMayComeLast) {
  RunInOrder(Order::kChiefLast, absl::Milliseconds(100));
}

TEST(StartOrderTest, ServersMayComeLast) {
  RunInOrder(Order::kServersLast, absl::Milliseconds(100));
}

TEST(StartOrderTest, TheChiefMayComeSecondsAfterAllOthers) {
  RunInOrder(Order::kChiefLast, absl::Seconds(3));
}

TEST(StartOrderTest, ServersMayComeSecondsAfterAllOthers) {
  RunInOrder(Order::kServersLast, absl::Seconds(3));
}

TEST(StartOrderTest, AWorkerMayComeWhenTrainingHasBegun) {
  auto job = TrainingJob::Make(
      {.workers = 3, .set = {"replicas_to_aggregate=2", "train_steps=250"}});
  for (const auto& [name, index] : job->Tasks()) {
    if (name == "worker" && index == 2) continue;
    ASSERT_THAT(job->cluster().Start(name, index), IsOk());
  }
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Start("worker", 2), IsOk());

  EXPECT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
}

TEST(StartOrderTest, TwoJobsOfOneNameShareAMachineAndAStateDirectory) {
  const TempDir state;
  auto one = TrainingJob::Make({.state_directory = state.path()});
  auto other = TrainingJob::Make({.state_directory = state.path()});
  ASSERT_THAT(one->StartAll(), IsOk());
  ASSERT_THAT(other->StartAll(), IsOk());

  EXPECT_THAT(one->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(other->cluster().WaitAllSucceed(kPatience), IsOk());

  ExpectSameBits(one->checkpoints(), other->checkpoints(), 150);
  EXPECT_THAT(one->StateFiles(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
