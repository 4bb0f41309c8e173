#include "deploy/cli/spans/explanation.h"

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

Explanation Explained(const JobTrace& trace, int64_t steps = 50) {
  absl::StatusOr<Explanation> explanation = Explain(trace, steps);
  EXPECT_OK(explanation);
  return explanation.ok() ? *explanation : Explanation();
}

// 19 steps of 2290 us, and a slowest one.
JobTrace SomeTrace() {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(11);
  job.workers[1].backward = 9000;
  job.Run();
  job.workers[1].backward = 2000;
  job.Run(9);
  return job.Trace();
}

TEST(ExplanationTest, CountsStepsFromOne) {
  const Explanation it = Explained(SomeTrace());
  EXPECT_EQ(it.steps, 20);
  EXPECT_EQ(it.first_step, 102);
  EXPECT_EQ(it.last_step, 121);
  EXPECT_EQ(it.workers, 3);
  EXPECT_EQ(it.servers, 1);
  EXPECT_EQ(it.clock_error, 1000);
}

TEST(ExplanationTest, HasTheMedianAndTheSlowestStep) {
  const Explanation it = Explained(SomeTrace());
  EXPECT_EQ(it.median.duration(), 2190'000);
  EXPECT_EQ(it.slowest.duration(), 9190'000);
  EXPECT_EQ(it.slowest.step, 111);
}

TEST(ExplanationTest, SharesAddUpToTheWhole) {
  const Explanation it = Explained(SomeTrace());
  EXPECT_NEAR(std::accumulate(it.shares.begin(), it.shares.end(), 0.0), 1,
              1e-9);
  EXPECT_EQ(it.last.at(1), 20);
  EXPECT_NEAR(it.waiting_for.at(1), it.waiting, 1e-9);
}

TEST(ExplanationTest, TakesOnlyTheNewestSteps) {
  const Explanation it = Explained(SomeTrace(), 4);
  EXPECT_EQ(it.steps, 4);
  EXPECT_EQ(it.first_step, 118);
  EXPECT_EQ(it.slowest.duration(), 2190'000);
}

TEST(ExplanationTest, AJobThatWentBackIsExplainedByItsStepsSinceThen) {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(20);
  job.step = 105;
  job.workers[1].backward = 100;
  job.workers[2].backward = 9000;
  job.Run(5);
  const Explanation it = Explained(job.Trace());
  EXPECT_EQ(it.first_step, 107);
  EXPECT_EQ(it.last_step, 110);
  EXPECT_EQ(it.last.at(2), 4);
}

TEST(ExplanationTest, ClocksThatDifferAreAligned) {
  JobTrace trace = SomeTrace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task != "worker 1") continue;
    task.clock.offset = 7'000'000'000;
    for (Span& span : task.spans) {
      span.begin -= 7'000'000'000;
      span.end -= 7'000'000'000;
    }
  }
  const Explanation apart = Explained(trace);
  const Explanation together = Explained(SomeTrace());
  EXPECT_EQ(apart.shares, together.shares);
}

TEST(ExplanationTest, WithoutAWholeStepItSaysWhy) {
  JobTrace trace;
  EXPECT_THAT(Explain(trace, 50),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("too few steps")));
  trace.silent = {"ps 0", "worker 1"};
  EXPECT_THAT(Explain(trace, 50),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no spans came from ps 0, worker 1")));
}

}  // namespace
}  // namespace lockstep::cli
