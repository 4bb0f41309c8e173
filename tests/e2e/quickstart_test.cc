// The quickstart's job, from start to end.

#include <string>
#include <utility>
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
using ::testing::IsEmpty;

constexpr int64_t kSteps = 200;

std::vector<std::string> QuickstartJob() {
  return {"replicas_to_aggregate=2", "total_num_replicas=3",
          absl::StrCat("train_steps=", kSteps), "checkpoint.every_steps=50",
          "checkpoint.keep=2"};
}

TEST(QuickstartTest, EveryProcessEndsWithZeroSoonAfterTheLastStep) {
  std::vector<std::string> settings = QuickstartJob();
  settings.push_back("lease=1h");  // no process must wait for its end
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = std::move(settings)});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(kSteps), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "chief") continue;
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{}))
        << name << " " << index;
  }
  // Less than the ten seconds that a chief waits for a member that is gone
  // without a word.
  EXPECT_THAT(job->cluster().WaitAllSucceed(absl::Seconds(8)), IsOk());
}

TEST(QuickstartTest, LeavesACheckpointAScoreAndNoState) {
  std::vector<std::string> settings = QuickstartJob();
  settings.push_back("checkpoint.keep=1");  // however many there were
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = std::move(settings)});

  ASSERT_THAT(job->Run(), IsOk());

  const CheckpointStore store(job->checkpoints());
  EXPECT_THAT(store.Verify(kSteps), IsOk());
  for (int64_t step = 50; step < kSteps; step += 50) {
    EXPECT_THAT(store.Verify(step), StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_THAT(job->StateFiles(), IsEmpty());
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("step 200: test accuracy")));
}

TEST(QuickstartTest, LearnsThePictures) {
  auto job = TrainingJob::Make(
      {.workers = 3, .evaluator = true, .set = QuickstartJob()});
  ASSERT_THAT(job->StartAll(), IsOk());

  ASSERT_THAT(job->cluster().WaitForLog("evaluator", 0, "step 200: accuracy ",
                                        kPatience),
              IsOk());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(::testing::ContainsRegex(
                  "step 200: accuracy (0\\.9[0-9]|1)")));
}

struct Kind {
  const char* name;
  int servers;  // 0: each task that computes hosts its copy
  int workers;
  std::vector<std::string> members;  // of the status, in its order
};

class QuickstartKindTest : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(
    All, QuickstartKindTest,
    ::testing::Values(
        Kind{"PARAMETER_SERVER",
             1,
             2,
             {"ps 0", "worker 0", "worker 1", "evaluator 0"}},
        Kind{"ONE_DEVICE", 1, 1, {"ps 0", "worker 0", "evaluator 0"}},
        Kind{"MIRRORED", 1, 1, {"ps 0", "worker 0", "evaluator 0"}},
        Kind{"MULTI_WORKER_MIRRORED",
             0,
             1,
             {"ps 0", "ps 1", "worker 0", "worker 1", "evaluator 0"}}),
    [](const auto& info) { return info.param.name; });

TEST_P(QuickstartKindTest, LearnsIsScoredAndTellsItsState) {
  const Kind& kind = GetParam();
  std::vector<std::string> settings = {
      absl::StrCat("train_steps=", kSteps), "checkpoint.every_steps=50",
      absl::StrCat("strategy.kind=", kind.name)};
  if (kind.name == std::string("MIRRORED")) {
    settings.push_back("strategy.replicas_per_worker=2");
  }
  auto job = TrainingJob::Make({.servers = kind.servers,
                                .workers = kind.workers,
                                .evaluator = true,
                                .set = settings});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(20), IsOk());
  const absl::StatusOr<JobStatus> status = job->GetStatus();
  ASSERT_THAT(status, IsOk());

  std::vector<std::string> members;
  for (const MemberStatus& member : status->members) {
    members.push_back(member.task);
    EXPECT_EQ(member.counts.has_value(), !member.task.starts_with("ps"))
        << member.task;
  }
  EXPECT_THAT(members, ::testing::UnorderedElementsAreArray(kind.members));
  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(::testing::ContainsRegex(
                  "step 200: accuracy (0\\.9[0-9]|1)")));
  EXPECT_THAT(job->cluster().ReadLog("chief", 0),
              IsOkAndHolds(HasSubstr("step 200: test accuracy")));
  EXPECT_THAT(job->StateFiles(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
