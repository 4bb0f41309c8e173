#include "worker/evaluator.h"

#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/fake_chief.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::FakeChief;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::RunningRole;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Evaluator::Options OnCpu() {
  Evaluator::Options options;
  options.device = "cpu";
  return options;
}

TEST(EvaluatorTest, LastCheckpointIsScoredBeforeTheJobEnds) {
  LocalJob job({.evaluator = true});
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);
  RunningRole<Evaluator> evaluator(
      Evaluator::Make(job.ClusterOf("evaluator", 0), OnCpu()));

  EXPECT_THAT(chief.Wait(), IsOk());
  EXPECT_THAT(evaluator.Wait(), IsOk());
  EXPECT_THAT(chief.chief().Metrics().ToText(),
              ContainsRegex("evaluation_step(\\{[^}]*\\})? 20\n"));
}

TEST(EvaluatorTest, TestSetThatIsMissingIsNamedAndFailsNoJob) {
  LocalJob job({.evaluator = true});
  job.job().data.test_images = job.directory().Join("absent");
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);
  RunningRole<Evaluator> evaluator(
      Evaluator::Make(job.ClusterOf("evaluator", 0), OnCpu()));

  EXPECT_THAT(evaluator.Wait(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
  EXPECT_THAT(chief.Wait(), IsOk());
}

// Runs an evaluator of the job until its heartbeats have said `wanted`, at most
// for a minute, and returns all that they have said.
std::set<std::string> HeartbeatsUntil(const JobConfig& job,
                                      const std::string& wanted) {
  FakeChief chief(job);
  const absl::StatusOr<TfConfig> config = ParseTfConfig(
      absl::StrCat(R"({"cluster": {"chief": [")", chief.address(),
                   R"("], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:1"],
                        "evaluator": ["127.0.0.1:3"]},
                      "task": {"type": "evaluator", "index": 0}})"),
      "test");
  EXPECT_OK(config);
  RunningRole<Evaluator> evaluator(
      Evaluator::Make(*Cluster::Make(*config), OnCpu()));
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!chief.said().contains(wanted) && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  evaluator.role().RequestStop("the test has seen enough");
  EXPECT_THAT(evaluator.Wait(), StatusIs(absl::StatusCode::kCancelled));
  return chief.said();
}

TEST(EvaluatorTest, SaysInItsHeartbeatsWhatItDoes) {
  constexpr char kWaits[] = "waits for a checkpoint";
  LocalJob job({.evaluator = true});

  EXPECT_THAT(HeartbeatsUntil(job.job(), kWaits), Contains(kWaits));
}

// The chief would wait for ever for the score of a checkpoint that it cannot
// see.
TEST(EvaluatorTest, ADirectoryThatIsNotTheChiefsIsATrouble) {
  LocalJob job({.evaluator = true});
  const std::string elsewhere = job.directory().Join("elsewhere");
  job.job().checkpoint.directory = elsewhere;
  const std::string trouble = absl::StrCat(
      "there is no checkpoint in ",
      std::filesystem::path(elsewhere).lexically_normal().string(),
      ", and it is not the directory that the chief has marked as the job's; "
      "set checkpoint.directory to an absolute path that the evaluator's host "
      "has, too");

  EXPECT_THAT(HeartbeatsUntil(job.job(), trouble), Contains(trouble));
}

}  // namespace
}  // namespace lockstep::worker
