#include "deploy/cli/spans/step_path.h"

#include <numeric>

#include "deploy/cli/spans/job_trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

int64_t Microseconds(const StepPath& path, PathPart part) {
  return path.of(part) / 1000;
}

TEST(StepPathsTest, EveryPartOfAStepIsOnItsPath) {
  MadeJob job(1);
  job.Run();
  job.workers[0] = {.token = 1,
                    .pull = 2,
                    .read = 3,
                    .forward = 40,
                    .backward = 50,
                    .announce = 6,
                    .send = 7};
  job.servers[0].updates = {8, 9};
  job.commit = 11;
  job.Run();
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(1));
  const StepPath& path = paths[0];
  EXPECT_EQ(path.step, 101);
  EXPECT_EQ(path.worker, 0);
  EXPECT_EQ(path.server, 0);
  EXPECT_EQ(path.parts, 2);
  EXPECT_EQ(path.last_update, 9000);
  EXPECT_EQ(Microseconds(path, PathPart::kToken), 1);
  EXPECT_EQ(Microseconds(path, PathPart::kReceiving), 2);
  EXPECT_EQ(Microseconds(path, PathPart::kReading), 3);
  EXPECT_EQ(Microseconds(path, PathPart::kComputing), 90);
  EXPECT_EQ(Microseconds(path, PathPart::kAnnouncing), 6);
  EXPECT_EQ(Microseconds(path, PathPart::kSending), 7);
  EXPECT_EQ(Microseconds(path, PathPart::kUpdating), 17);
  EXPECT_EQ(Microseconds(path, PathPart::kCommitting), 11);
  EXPECT_EQ(path.of(PathPart::kAbsent), 0);
}

TEST(StepPathsTest, ThePartsAddUpToTheStep) {
  MadeJob job(3, 2);
  job.workers[1].backward = 777;
  job.servers[1].updates = {100, 200};
  job.Run(5);
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(4));
  for (const StepPath& path : paths) {
    EXPECT_EQ(std::accumulate(path.times.begin(), path.times.end(), int64_t{0}),
              path.duration());
  }
}

TEST(StepPathsTest, GoesThroughTheLastWorkerAndTheLastServer) {
  MadeJob job(3, 2);
  job.workers[1].backward = 500;
  job.servers[1].updates = {300};
  job.Run(2);
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(paths[0].worker, 1);
  EXPECT_EQ(paths[0].server, 1);
  EXPECT_EQ(paths[0].lateness, 400'000);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kUpdating), 300);
}

// A mirror that sums no part receives no push, and is prepared last.
TEST(StepPathsTest, AMirrorWaitsForThePushesToAllMirrors) {
  MadeJob job(2, 2);
  job.workers[1].backward = 500;
  job.servers[1].updates = {300};
  job.Run(2);
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task != "ps 1") continue;
    std::erase_if(task.spans, [](const Span& span) {
      return span.kind == SpanKind::kReceive;
    });
  }
  // Servers that share the parts: the last one has no pushes.
  EXPECT_THAT(StepPaths(trace), IsEmpty());
  trace.limits.no_servers = true;
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(paths[0].worker, 1);
  EXPECT_EQ(paths[0].server, 1);
  EXPECT_EQ(paths[0].lateness, 400'000);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kUpdating), 300);
  EXPECT_EQ(
      std::accumulate(paths[0].times.begin(), paths[0].times.end(), int64_t{0}),
      paths[0].duration());
}

TEST(StepPathsTest, APushBeforeTheEpochHasArrived) {
  MadeJob job(2);
  job.Run(2);
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    for (Span& span : task.spans) {
      if (span.kind != SpanKind::kReceive || span.peer != 1) continue;
      span.begin = -2;
      span.end = -1;
    }
  }
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(paths[0].worker, 0);
  EXPECT_EQ(paths[0].workers.count(1), 1u);
}

TEST(StepPathsTest, TheLastOfSeveralPushesBeforeTheEpochCounts) {
  MadeJob job(2);
  job.workers[1].backward = 110;
  job.Run(2);
  JobTrace trace = job.Trace();
  // The pushes of the second step come at -30 and at -20, the commit at 30.
  const int64_t back = (job.now - 30) * 1000;
  for (TaskTrace& task : trace.tasks) {
    for (Span& span : task.spans) {
      span.begin -= back;
      span.end -= back;
    }
  }
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  ASSERT_EQ(paths[0].workers.at(1).arrived, -20'000);
  EXPECT_EQ(paths[0].worker, 1);
  EXPECT_EQ(paths[0].lateness, 10'000);
}

TEST(StepPathsTest, AWorkerOutsideOfTheSetHoldsNothingUp) {
  MadeJob job(3);
  job.workers[2].backward = 5000;
  job.workers[2].counts = false;
  job.Run(2);
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_NE(paths[0].worker, 2);
  EXPECT_EQ(paths[0].workers.count(2), 0u);
}

TEST(StepPathsTest, AWorkerWithoutSpansWasNotThere) {
  MadeJob job(2);
  job.workers[1].recorded = false;
  job.workers[1].backward = 900;
  job.Run(2);
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(paths[0].worker, 1);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kAbsent), 1040);
}

TEST(StepPathsTest, AWorkerThatHandsNoSpansInIsNotAbsent) {
  MadeJob job(2);
  job.workers[1].recorded = false;
  job.workers[1].backward = 900;
  job.Run(2);
  JobTrace trace = job.Trace();
  trace.silent = {"worker 1"};
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(Microseconds(paths[0], PathPart::kUnknown), 1040);
  EXPECT_EQ(paths[0].of(PathPart::kAbsent), 0);
}

TEST(StepPathsTest, ASilentWorkerThatDiedWasNotThere) {
  MadeJob job(2);
  job.workers[1].recorded = false;
  job.workers[1].backward = 900;
  job.Run(2);
  job.Died(1);
  JobTrace trace = job.Trace();
  trace.silent = {"worker 1"};
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(Microseconds(paths[0], PathPart::kAbsent), 1040);
}

TEST(StepPathsTest, PushesOfAnEarlierAttemptDoNotCount) {
  MadeJob job(1);
  job.Run(2);
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task != "ps 0") continue;
    for (Span& span : task.spans) {
      if (span.kind == SpanKind::kPrepare) span.attempt = 2;
    }
  }
  EXPECT_THAT(StepPaths(trace), IsEmpty());
}

TEST(StepPathsTest, WhileAServerUpdatesAPushWaitsForTheServer) {
  MadeJob job(1);
  job.Run();
  job.workers[0].send = 100;
  job.Run();
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task != "ps 0") continue;
    const int64_t arrived = (1'000'000 + 290 + 10 + 10 + 200 + 100) * 1000;
    task.spans.push_back({.kind = SpanKind::kUpdate,
                          .part = 5,
                          .step = 101,
                          .begin = arrived - 80'000,
                          .end = arrived - 20'000});
  }
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(Microseconds(paths[0], PathPart::kSending), 40);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kUpdating), 40 + 60);
}

// In a job without backups the next pass begins while gradients are sent.
TEST(StepPathsTest, TheNextPassDoesNotHideThatGradientsAreOnTheirWay) {
  MadeJob job(1);
  job.Run();
  job.workers[0].send = 100;
  job.Run();
  JobTrace trace = job.Trace();
  for (TaskTrace& task : trace.tasks) {
    if (task.task != "worker 0") continue;
    for (Span& span : task.spans) {
      if (span.step != 101 || span.kind != SpanKind::kPush) continue;
      span.kind = SpanKind::kAwaitValues;
      span.step = 102;
    }
  }
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(Microseconds(paths[0], PathPart::kSending), 100);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kReceiving), 10);
}

TEST(StepPathsTest, CopiesForACheckpointAreNoCommit) {
  MadeJob job(1);
  job.Run();
  job.commit = 100;
  job.Run();
  JobTrace trace = job.Trace();
  trace.tasks[0].spans.push_back({.kind = SpanKind::kCheckpointCopy,
                                  .step = 101,
                                  .begin = (job.now - 70) * 1000,
                                  .end = (job.now + 70) * 1000});
  const std::vector<StepPath> paths = StepPaths(trace);
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(Microseconds(paths[0], PathPart::kCheckpoint), 70);
  EXPECT_EQ(Microseconds(paths[0], PathPart::kCommitting), 30);
}

TEST(StepPathsTest, AStepAfterAGapHasNoPath) {
  MadeJob job(1);
  job.Run(2);
  job.step += 3;
  job.Run(1);
  const std::vector<StepPath> paths = StepPaths(job.Trace());
  ASSERT_THAT(paths, SizeIs(1));
  EXPECT_EQ(paths[0].step, 101);
}

TEST(StepPathsTest, NoSpansMakeNoPaths) {
  EXPECT_THAT(StepPaths(JobTrace()), IsEmpty());
}

}  // namespace
}  // namespace lockstep::cli
