#include "deploy/cli/spans/job_trace.h"

#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

TEST(JobTraceTest, ClocksAreAlignedOnce) {
  JobTrace trace;
  trace.tasks.push_back(
      {"worker 0", "", {500, 7}, {{.step = 1, .begin = 10, .end = 20}}});
  AlignClocks(trace);
  AlignClocks(trace);
  EXPECT_EQ(trace.tasks[0].spans[0].begin, 510);
  EXPECT_EQ(trace.tasks[0].spans[0].end, 520);
  EXPECT_EQ(ClockError(trace), 7);
  trace.tasks.push_back({"worker 1", "", {0, -1}, {}});
  EXPECT_EQ(ClockError(trace), -1);
}

TEST(JobTraceTest, KeepsTheNewestCommittedSteps) {
  MadeJob job(2);
  job.workers[0].read = 5;
  job.Run(10);
  JobTrace trace = job.Trace();
  const StepRange range = NewestSteps(trace, 3);
  EXPECT_EQ(range.first, 107);
  EXPECT_EQ(range.end, 110);
  KeepSteps(range, trace);
  int reads = 0;
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) {
      if (span.kind == SpanKind::kReadData) {
        ++reads;
      } else {
        EXPECT_GE(span.step, 107);
      }
    }
  }
  EXPECT_EQ(reads, 3);
  EXPECT_TRUE(NewestSteps(JobTrace(), 3).empty());
}

// Servers have begun again from a checkpoint of step 104.
TEST(JobTraceTest, StepsThatWereLostAreNotAmongTheNewest) {
  MadeJob job(2);
  job.Run(10);
  job.step = 104;
  const int64_t back = job.now;
  job.Run(3);
  JobTrace trace = job.Trace();
  DropLostSteps(trace);
  const StepRange range = NewestSteps(trace, 50);
  EXPECT_EQ(range.first, 104);
  EXPECT_EQ(range.end, 107);
  for (const TaskTrace& task : trace.tasks) {
    for (const Span& span : task.spans) EXPECT_GE(span.begin, back * 1000);
  }
}

TEST(JobTraceTest, ACommitThatIsRepeatedLosesNoSteps) {
  MadeJob job(2);
  job.Run(10);
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task == "ps 0") task.spans.push_back(task.spans.back());
  }
  DropLostSteps(trace);
  EXPECT_EQ(NewestSteps(trace, 50).first, 100);
}

}  // namespace
}  // namespace lockstep::cli
