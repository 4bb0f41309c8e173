// Each bottleneck, made on purpose, is named as what would help most to mend.

#include "deploy/cli/spans/advice.h"

#include "deploy/cli/spans/explanation.h"
#include "deploy/cli/spans/explanation_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

Explanation ExplanationOf(const MadeJob& job) {
  absl::StatusOr<Explanation> explanation = Explain(job.Trace(), 50);
  EXPECT_OK(explanation);
  return explanation.ok() ? *explanation : Explanation();
}

Advice BestOf(const MadeJob& job) {
  const Explanation explanation = ExplanationOf(job);
  return explanation.advice.empty() ? Advice() : explanation.advice.front();
}

TEST(AdviceTest, ASlowWorkerNeedsABackup) {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kBackup);
  EXPECT_EQ(best.worker, 1);
  EXPECT_NEAR(best.share, 1900 / 2190.0, 0.05);
}

TEST(AdviceTest, WorkersThatAreLateInTurnNeedABackup) {
  MadeJob job(3);
  for (int step = 0; step < 21; ++step) {
    for (int worker = 0; worker < 3; ++worker) {
      job.workers[worker].forward = step % 3 == worker ? 1500 : 100;
    }
    job.Run();
  }
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kBackup);
  EXPECT_EQ(best.worker, -1);
}

TEST(AdviceTest, PassesThatWaitForBatchesNeedAFasterReader) {
  MadeJob job(2);
  for (auto& worker : job.workers) worker.read = 3000;
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kFasterReader);
  EXPECT_EQ(best.worker, -1);
}

TEST(AdviceTest, ASlowDiskOfOneWorkerIsNamed) {
  MadeJob job(3);
  job.workers[2].read = 3000;
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kFasterReader);
  EXPECT_EQ(best.worker, 2);
}

TEST(AdviceTest, ASlowWayOfOneWorkerIsItsNetwork) {
  MadeJob job(3);
  job.flags = 0;
  job.workers[0].send = 4000;
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kWorkerNetwork);
  EXPECT_EQ(best.worker, 0);
}

// Makes all workers send for long, from another host than the server's.
MadeJob SlowNetwork() {
  MadeJob job(2);
  job.flags = 0;
  for (auto& worker : job.workers) worker.send = 4000;
  job.Run(20);
  return job;
}

Remedy BestFrom(JobTrace trace, const std::string& server_host) {
  for (TaskTrace& task : trace.tasks) {
    if (task.task == "ps 0") task.host = server_host;
  }
  const absl::StatusOr<Explanation> explanation = Explain(trace, 50);
  EXPECT_OK(explanation);
  return explanation.ok() ? explanation->advice.front().remedy
                          : Remedy::kMoreCompute;
}

TEST(AdviceTest, OneHostWithoutSharedMemoryShouldUseIt) {
  EXPECT_EQ(BestFrom(SlowNetwork().Trace(), "host"), Remedy::kSharedMemory);
}

TEST(AdviceTest, LargeGradientsBetweenHostsShouldBeBFloat16) {
  EXPECT_EQ(BestFrom(SlowNetwork().Trace(), "other"), Remedy::kBFloat16);
}

// They have no backups, and gradients in shared memory neither.
TEST(AdviceTest, SharedStepsNeedOtherRemedies) {
  MadeJob late(3);
  late.shared_work = true;
  late.workers[1].backward = 2000;
  late.Run(20);
  const Advice best = BestOf(late);
  EXPECT_EQ(best.remedy, Remedy::kSmallerMicroBatches);
  EXPECT_EQ(best.worker, -1);

  for (const uint8_t flags : {uint8_t{0}, Span::kBFloat16}) {
    MadeJob network(2);
    network.shared_work = true;
    network.flags = flags;
    for (auto& worker : network.workers) worker.send = 4000;
    network.Run(20);
    EXPECT_EQ(BestFrom(network.Trace(), "host"),
              flags == 0 ? Remedy::kLargerPushes : Remedy::kMoreServers);
    // As with variables of bfloat16.
    JobTrace ruled_out = network.Trace();
    ruled_out.limits = {.no_larger_pushes = true};
    EXPECT_EQ(BestFrom(ruled_out, "host"), Remedy::kMoreServers);
  }

  MadeJob one_slow(3);
  one_slow.shared_work = true;
  one_slow.workers[0].send = 4000;
  one_slow.Run(20);
  const Explanation explanation = ExplanationOf(one_slow);
  ASSERT_FALSE(explanation.advice.empty());
  EXPECT_EQ(explanation.advice.front().remedy, Remedy::kWorkerNetwork);
  EXPECT_THAT(AdviceText(explanation.advice.front(), explanation),
              Not(HasSubstr("backup")));
}

// Only the limits of the job show then that its work is shared.
TEST(AdviceTest, SharedStepsOfWorkersWithoutSpansNeedSmallerMicroBatches) {
  MadeJob job(3);
  for (auto& worker : job.workers) worker.recorded = false;
  job.workers[1].backward = 2000;
  job.Run(20);
  JobTrace trace = job.Trace();
  trace.silent = {"worker 0", "worker 1", "worker 2"};
  trace.limits = {.no_backups = true};
  const absl::StatusOr<Explanation> explanation = Explain(trace, 50);
  ASSERT_OK(explanation);
  EXPECT_EQ(explanation->advice.front().remedy, Remedy::kSmallerMicroBatches);
}

TEST(AdviceTest, NoBackupIsAskedForWhereThereCanBeNone) {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(20);
  job.Died(2);
  job.Run(2);
  JobTrace trace = job.Trace();
  trace.limits = {.no_backups = true, .no_servers = true};
  const absl::StatusOr<Explanation> explanation = Explain(trace, 50);
  ASSERT_OK(explanation);
  EXPECT_EQ(explanation->advice.front().remedy, Remedy::kEqualWorkers);
  EXPECT_EQ(explanation->advice.front().worker, 1);
  for (const Advice& advice : explanation->advice) {
    EXPECT_NE(advice.remedy, Remedy::kBackup);
    EXPECT_THAT(AdviceText(advice, *explanation),
                Not(HasSubstr("another backup")));
    EXPECT_THAT(AdviceText(advice, *explanation),
                Not(HasSubstr("with a backup")));
  }
}

TEST(AdviceTest, TheChiefThatSetsBackupsNeedsAWorker) {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(20);
  JobTrace trace = job.Trace();
  trace.limits = {.chief_sets_backups = true};
  const absl::StatusOr<Explanation> explanation = Explain(trace, 50);
  ASSERT_OK(explanation);
  EXPECT_THAT(AdviceText(explanation->advice.front(), *explanation),
              HasSubstr("one more worker, of which the chief makes a backup"));
}

TEST(AdviceTest, ServersRoundedGradientsAndSharedMemoryAreNotAskedForInVain) {
  JobTrace network = SlowNetwork().Trace();
  network.limits = {.no_bfloat16 = true};
  EXPECT_EQ(BestFrom(network, "other"), Remedy::kMoreServers);
  network.limits = {.no_servers = true, .no_bfloat16 = true};
  EXPECT_EQ(BestFrom(network, "other"), Remedy::kMoreCompute);

  network.limits = {.no_shared_memory = true};
  EXPECT_EQ(BestFrom(network, "host"), Remedy::kMoreCompute);

  MadeJob busy(2);
  busy.servers[0].updates.assign(20, 200);
  busy.Run(20);
  JobTrace updates = busy.Trace();
  updates.limits = {.no_servers = true};
  EXPECT_EQ(BestFrom(updates, "host"), Remedy::kMoreCompute);
}

TEST(AdviceTest, BFloat16BetweenHostsNeedsMoreServers) {
  MadeJob job(2);
  job.flags = Span::kBFloat16;
  for (auto& worker : job.workers) worker.send = 4000;
  job.Run(20);
  EXPECT_EQ(BestFrom(job.Trace(), "other"), Remedy::kMoreServers);
}

TEST(AdviceTest, ABusyServerNeedsAnother) {
  MadeJob job(2);
  job.servers[0].updates.assign(20, 200);
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kMoreServers);
  EXPECT_EQ(best.server, 0);
}

TEST(AdviceTest, OneLargePartShouldBeCut) {
  MadeJob job(2, 2);
  job.servers[1].updates = {4000};
  job.Run(20);
  const Advice best = BestOf(job);
  EXPECT_EQ(best.remedy, Remedy::kMoreParts);
  EXPECT_EQ(best.server, 1);
}

TEST(AdviceTest, AWorkerThatDiesAgainAndAgainIsToBeMended) {
  MadeJob job(2);
  for (int round = 0; round < 6; ++round) {
    job.Run(3);
    job.Died(1);
    job.workers[1].recorded = false;
    job.workers[1].token = 20000;
    job.Run();
    job.workers[1] = {};
  }
  const Explanation explanation = ExplanationOf(job);
  ASSERT_FALSE(explanation.advice.empty());
  EXPECT_EQ(explanation.advice.front().remedy, Remedy::kMendWorker);
  EXPECT_EQ(explanation.advice.front().worker, 1);
  EXPECT_EQ(explanation.deaths.at(1), 6);
}

TEST(AdviceTest, WhereAllComputeThereIsNothingElseToDo) {
  MadeJob job(2);
  for (auto& worker : job.workers) worker.backward = 50000;
  job.Run(20);
  const Explanation explanation = ExplanationOf(job);
  ASSERT_THAT(explanation.advice, SizeIs(1));
  EXPECT_EQ(explanation.advice[0].remedy, Remedy::kMoreCompute);
  EXPECT_GT(explanation.advice[0].share, 0.9);
}

TEST(AdviceTest, EachRemedyIsNamedOnceAndAtMostThreeAre) {
  MadeJob job(3);
  job.flags = 0;
  job.workers[0].read = 400;
  job.workers[1].send = 300;
  job.workers[2].backward = 700;
  job.servers[0].updates.assign(9, 60);
  job.Run(20);
  const Explanation explanation = ExplanationOf(job);
  EXPECT_LE(explanation.advice.size(), 3u);
  for (size_t i = 0; i < explanation.advice.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(explanation.advice[i].remedy, explanation.advice[j].remedy);
      EXPECT_GE(explanation.advice[j].share, explanation.advice[i].share);
    }
  }
}

}  // namespace
}  // namespace lockstep::cli
