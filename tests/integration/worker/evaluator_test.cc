#include "worker/evaluator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::RunningRole;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
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

}  // namespace
}  // namespace lockstep::worker
