// Each point of the protocol: a worker that is killed there is started again,
// a server or chief is seen to get there.

#include "common/fault_points.h"

#include <signal.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kSteps = 40;
// Enough for a successor to come back to a job that does not wait for it.
constexpr int64_t kStepsWithBackup = 400;

// What passes the point, and how often a job passes it at least.
struct Walk {
  std::string point;
  bool with_backup = false;
  int nth = 1;
};

// Backups alone ask before they push, and watch whether the step goes on.
bool NeedsABackup(absl::string_view point) {
  return absl::StrContains(point, ".announce.") ||
         absl::StrContains(point, ".watch.");
}

// Memory is shared once, before the first step.
bool IsPassedOnce(absl::string_view point) {
  return absl::StrContains(point, ".share.");
}

std::vector<Walk> Walks() {
  std::vector<Walk> walks;
  for (const FaultPointName& row : kFaultPoints) {
    if (!absl::StartsWith(row.name, "worker.")) continue;
    const std::string point(row.name);
    const int nth = IsPassedOnce(point) ? 1 : 7;
    walks.push_back({point, true, nth});
    if (!NeedsABackup(point)) walks.push_back({point, false, nth});
  }
  return walks;
}

// A successor replaces its predecessor at once: no lease has to end.
TrainingJob::Options OptionsFor(bool with_backup) {
  TrainingJob::Options options;
  options.workers = with_backup ? 3 : 2;
  options.pictures = 600;
  options.set = {
      "replicas_to_aggregate=2", "lease=1h",
      absl::StrCat("train_steps=", with_backup ? kStepsWithBackup : kSteps)};
  return options;
}

class FaultPointsTest : public ::testing::TestWithParam<Walk> {
 protected:
  // The checkpoints of a job in which nothing happened.
  static const std::string& Undisturbed() {
    static const auto& job = *[] {
      auto made = TrainingJob::Make(OptionsFor(/*with_backup=*/false));
      EXPECT_THAT(made->Run(), IsOk());
      return made.release();
    }();
    return job.checkpoints();
  }
};

// Where there is a backup the job may be done before the successor is there.
void ExpectOthersSucceed(TrainingJob& job) {
  for (const auto& [name, index] : job.Tasks()) {
    if (name == "worker" && index == 1) continue;
    EXPECT_THAT(job.cluster().Wait(name, index, kPatience),
                IsOkAndHolds(TaskExit{}))
        << name << " " << index;
  }
}

TEST_P(FaultPointsTest, JobGoesOnWithTheSuccessorOfAKilledWorker) {
  const Walk& walk = GetParam();
  auto job = TrainingJob::Make(OptionsFor(walk.with_backup));
  job->cluster().SetEnvironment(
      "worker", 1, "LOCKSTEP_FAULT",
      absl::StrCat(walk.point, ":", walk.nth, ":kill"));
  ASSERT_THAT(job->StartAll(), IsOk());

  ASSERT_THAT(job->cluster().Wait("worker", 1, kPatience),
              IsOkAndHolds(TaskExit{.signal = SIGKILL}))
      << "the point was not passed";
  job->cluster().UnsetEnvironment("worker", 1, "LOCKSTEP_FAULT");
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());

  if (walk.with_backup) {
    ExpectOthersSucceed(*job);
  } else {
    ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
    ExpectSameBits(Undisturbed(), job->checkpoints(), kSteps);
  }
  EXPECT_THAT(job->StateFiles(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Points, FaultPointsTest, ::testing::ValuesIn(Walks()),
                         [](const auto& info) {
                           return absl::StrCat(
                               absl::StrReplaceAll(info.param.point,
                                                   {{".", "_"}}),
                               info.param.with_backup ? "_with_backup" : "");
                         });

std::vector<std::string> OtherPoints() {
  std::vector<std::string> points;
  for (const FaultPointName& row : kFaultPoints) {
    if (!absl::StartsWith(row.name, "worker.")) points.emplace_back(row.name);
  }
  return points;
}

class PeerFaultPointsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PeerFaultPointsTest, ProcessGetsThereAndEndsThere) {
  const std::string& point = GetParam();
  TrainingJob::Options options = OptionsFor(/*with_backup=*/true);
  options.set.insert(options.set.end(),
                     {"stall_timeout=500ms", "train_steps=1000000"});
  auto job = TrainingJob::Make(options);
  const std::string process = absl::StartsWith(point, "ps.") ? "ps" : "chief";
  job->cluster().SetEnvironment(process, 0, "LOCKSTEP_FAULT",
                                absl::StrCat(point, ":1:kill"));
  if (absl::StrContains(point, ".replace.")) {
    job->cluster().SetEnvironment("worker", 1, "LOCKSTEP_FAULT",
                                  "worker.push.send:9:stall");
  }

  ASSERT_THAT(job->StartAll(), IsOk());
  if (absl::StrContains(point, ".expire.")) {
    ASSERT_THAT(job->WaitForStep(3), IsOk());
    ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
    ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  }

  EXPECT_THAT(job->cluster().Wait(process, 0, kPatience),
              IsOkAndHolds(TaskExit{.signal = SIGKILL}));
}

INSTANTIATE_TEST_SUITE_P(Points, PeerFaultPointsTest,
                         ::testing::ValuesIn(OtherPoints()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}});
                         });

TEST(FaultPointTableTest, NoPointIsLeftUnvisited) {
  std::set<std::string> walked;
  for (const Walk& walk : Walks()) walked.insert(walk.point);
  for (const std::string& point : OtherPoints()) walked.insert(point);

  for (const FaultPointName& row : kFaultPoints) {
    EXPECT_EQ(walked.count(std::string(row.name)), 1u) << row.name;
  }
}

}  // namespace
}  // namespace lockstep::testing
