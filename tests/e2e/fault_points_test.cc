// Every fault point of the protocol. Points of a step: a killed worker is
// restarted; a server or chief is shown to reach the point. Points of recovery,
// membership, checkpoints and the end: one after the other, in one job.

#include "common/base/fault_points.h"

#include <signal.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kSteps = 40;
// Enough steps for a successor to join a job that does not wait for it.
constexpr int64_t kStepsWithBackup = 400;

// The task that passes the point, and the least number of passes in a job.
struct Walk {
  std::string point;
  bool with_backup = false;
  int nth = 1;
};

// Only jobs with backups announce before a push, and watch the step.
bool NeedsABackup(absl::string_view point) {
  return absl::StrContains(point, ".announce.") ||
         absl::StrContains(point, ".watch.");
}

// The points at which one task is killed, start after start, until the job is
// done. Memory is shared once, before the first step.
struct Chain {
  // The programs of the workers. kProgram: one with variables and values of its
  // own; kClipped: two of these, whose mean gradients servers limit; kMirrored:
  // built in, with mirrors.
  enum class Workers { kBuiltIn, kProgram, kClipped, kMirrored };

  std::string process;
  int index = 0;
  std::vector<std::string> points;
  // The state of ps 1 is removed before each start.
  bool without_state = false;
  // No successor starts, because the other tasks end without it.
  bool without_successor = false;
  Workers workers = Workers::kBuiltIn;
  int nth = 1;  // the pass of the point at which the task is killed
};

// In the order in which a task passes the points: at its start, then at the
// next checkpoint, then at the end.
std::vector<Chain> BuiltInChains() {
  return {
      {"ps", 1, {"member.register.send",  "member.register.answered",
                 "ps.epoch.received",     "ps.epoch.answering",
                 "ps.create.received",    "ps.record.before",
                 "ps.record.after",       "ps.create.answering",
                 "ps.activate.received",  "ps.activate.answering",
                 "member.heartbeat.send", "member.heartbeat.answered",
                 "ps.snapshot.received",  "ps.snapshot.answering",
                 "ps.read.received",      "ps.read.answering",
                 "ps.release.received",   "ps.release.answering",
                 "ps.remove.before",      "ps.remove.after",
                 "member.leave.send"}},
      {"ps", 0, {"ps.close.received", "ps.close.answering"}},
      {"ps", 1, {"ps.write.received", "ps.write.answering"}, true},
      {"chief", 0, {"chief.write.send", "chief.write.answered"}, true},
      {"chief", 0, {"chief.register.received",  "chief.register.answering",
                    "chief.describe.received",  "chief.describe.answering",
                    "chief.plan.received",      "chief.plan.answering",
                    "chief.epoch.send",         "chief.epoch.answered",
                    "chief.create.send",        "chief.create.answered",
                    "chief.activate.send",      "chief.activate.answered",
                    "chief.heartbeat.received", "chief.heartbeat.answering",
                    "chief.snapshot.send",      "chief.snapshot.answered",
                    "chief.read.send",          "chief.read.answered",
                    "chief.release.send",       "chief.release.answered",
                    "chief.rename.before",      "chief.rename.after",
                    "chief.close.send",         "chief.close.answered",
                    "chief.leave.received"}},
      {"chief", 0, {"chief.leave.answering"}},
      {"worker",
       1,
       {"worker.describe.send", "worker.describe.answered", "worker.plan.send",
        "worker.plan.answered", "member.leave.answered"},
       false,
       true},
  };
}

// The same of jobs whose workers are users' programs.
std::vector<Chain> ProgramChains() {
  return {
      {.process = "worker",
       .points = {"worker.values.send", "worker.values.answered"},
       .workers = Chain::Workers::kProgram},
      {.process = "ps",
       .points = {"ps.norm.half_done"},
       .workers = Chain::Workers::kClipped},
      {.process = "ps",
       .index = 1,
       .points = {"ps.norm.half_done", "ps.take.answering",
                  "ps.push.answering"},
       .workers = Chain::Workers::kClipped,
       .nth = 3},
      // A step has two takes of each server.
      {.process = "chief",
       .points = {"chief.take.send", "chief.take.answered"},
       .workers = Chain::Workers::kClipped,
       .nth = 7},
      {.process = "worker",
       .index = 1,
       .points = {"worker.push.answered", "worker.token.send"},
       .workers = Chain::Workers::kClipped,
       .nth = 9},
  };
}

// The exchange of means, and the copy of a mirror's state.
std::vector<Chain> MirrorChains() {
  return {
      {.process = "ps",
       .index = 1,
       .points = {"ps.fetch.send", "ps.fetch.answered", "ps.means.received",
                  "ps.means.answering"},
       .workers = Chain::Workers::kMirrored,
       .nth = 7},
      {.process = "ps",
       .points = {"ps.fetch.answered", "ps.means.answering"},
       .workers = Chain::Workers::kMirrored,
       .nth = 9},
      {.process = "ps",
       .index = 1,
       .points = {"ps.write.received", "ps.write.answering",
                  "ps.activate.answering"},
       .without_state = true,
       .workers = Chain::Workers::kMirrored},
      {.process = "chief",
       .points = {"chief.read.answered", "chief.write.send"},
       .without_state = true,
       .workers = Chain::Workers::kMirrored},
  };
}

std::vector<Chain> Chains() {
  std::vector<Chain> chains = BuiltInChains();
  for (Chain& chain : MirrorChains()) chains.push_back(std::move(chain));
  for (Chain& chain : ProgramChains()) chains.push_back(std::move(chain));
  return chains;
}

bool IsInAChain(absl::string_view point) {
  for (const Chain& chain : Chains()) {
    // What a job with clipping shares with others is walked there, too.
    if (chain.workers == Chain::Workers::kClipped &&
        !absl::StrContains(point, ".norm.")) {
      continue;
    }
    if (chain.workers == Chain::Workers::kMirrored &&
        !absl::StrContains(point, ".fetch.") &&
        !absl::StrContains(point, ".means.")) {
      continue;
    }
    for (const std::string& other : chain.points) {
      if (other == point) return true;
    }
  }
  return false;
}

bool IsPassedOnce(absl::string_view point) {
  return absl::StrContains(point, ".share.");
}

// Without a backup a worker pulls only at its start, in one call to each of the
// two servers: later values come in the answers to its pushes.
int NthPassage(absl::string_view point, bool with_backup) {
  if (IsPassedOnce(point)) return 1;
  return !with_backup && absl::StrContains(point, ".pull.") ? 2 : 7;
}

std::vector<Walk> Walks() {
  std::vector<Walk> walks;
  for (const FaultPointName& row : kFaultPoints) {
    if (!absl::StartsWith(row.name, "worker.") || IsInAChain(row.name)) {
      continue;
    }
    const std::string point(row.name);
    for (const bool with_backup : {true, false}) {
      if (!with_backup && NeedsABackup(point)) continue;
      walks.push_back({point, with_backup, NthPassage(point, with_backup)});
    }
  }
  return walks;
}

// A successor replaces its predecessor at once, before the lease ends.
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
  // The checkpoints of an undisturbed job.
  static const std::string& Undisturbed() {
    static const auto& job = *[] {
      TrainingJob::Options plain = OptionsFor(/*with_backup=*/false);
      plain.tls = false;
      auto made = TrainingJob::Make(plain);
      EXPECT_THAT(made->Run(), IsOk());
      return made.release();
    }();
    return job.checkpoints();
  }
};

// With a backup the job may be done before the successor starts.

// Starts a job; null unless worker 1 was killed at the point of the walk. With
// a backup it is chance which two workers count: on a busy machine worker 1 may
// be the one that does not until the job is done.
std::unique_ptr<TrainingJob> KillWorker1(const Walk& walk) {
  for (int attempt = 0; attempt < (walk.with_backup ? 4 : 1); ++attempt) {
    auto job = TrainingJob::Make(OptionsFor(walk.with_backup));
    job->cluster().SetEnvironment(
        "worker", 1, "LOCKSTEP_FAULT",
        absl::StrCat(walk.point, ":", walk.nth, ":kill"));
    EXPECT_THAT(job->StartAll(), IsOk());
    const auto end = job->cluster().Wait("worker", 1, kPatience);
    if (end.ok() && *end == cli::TaskExit{.signal = SIGKILL}) return job;
    EXPECT_THAT(end, IsOkAndHolds(cli::TaskExit{}));
  }
  return nullptr;
}

TEST_P(FaultPointsTest, JobGoesOnWithTheSuccessorOfAKilledWorker) {
  const Walk& walk = GetParam();
  const std::unique_ptr<TrainingJob> job = KillWorker1(walk);
  ASSERT_NE(job, nullptr) << "the point was not passed";
  job->cluster().UnsetEnvironment("worker", 1, "LOCKSTEP_FAULT");
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());

  if (walk.with_backup) {
    job->ExpectOthersSucceed(1);
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
    if (absl::StartsWith(row.name, "worker.") || IsInAChain(row.name)) continue;
    points.emplace_back(row.name);
  }
  return points;
}

// Waits until a step is committed, or the process has ended: on a busy machine
// it may meet its point before the first step, at a worker that came late.
absl::Status WaitForStepOrEnd(TrainingJob& job, int64_t step,
                              const std::string& process) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const absl::StatusOr<ChildProcess*> child =
        job.cluster().Process(process, 0);
    if (child.ok() && (*child)->Poll().has_value()) return absl::OkStatus();
    const auto status = job.TryStatus();
    if (status.ok() && status->step >= step) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::DeadlineExceededError("neither a step nor the end");
}

class PeerFaultPointsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PeerFaultPointsTest, ProcessGetsThereAndEndsThere) {
  const std::string& point = GetParam();
  const bool expires = absl::StrContains(point, ".expire.");
  // Without a backup no step is made before the killed worker has joined.
  TrainingJob::Options options = OptionsFor(/*with_backup=*/!expires);
  options.set.insert(options.set.end(),
                     {"stall_timeout=500ms", "train_steps=1000000"});
  if (absl::StrContains(point, ".values.")) UseProgram(options);
  auto job = TrainingJob::Make(options);
  const std::string process = absl::StartsWith(point, "ps.") ? "ps" : "chief";
  job->cluster().SetEnvironment(process, 0, "LOCKSTEP_FAULT",
                                absl::StrCat(point, ":1:kill"));
  if (absl::StrContains(point, ".replace.")) {
    job->cluster().SetEnvironment("worker", 1, "LOCKSTEP_FAULT",
                                  "worker.push.send:9:stall");
  }

  ASSERT_THAT(job->StartAll(), IsOk());
  if (expires) {
    ASSERT_THAT(WaitForStepOrEnd(*job, 3, process), IsOk());
    ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
    ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  }

  EXPECT_THAT(job->cluster().Wait(process, 0, kPatience),
              IsOkAndHolds(cli::TaskExit{.signal = SIGKILL}));
}

INSTANTIATE_TEST_SUITE_P(Points, PeerFaultPointsTest,
                         ::testing::ValuesIn(OtherPoints()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{".", "_"}});
                         });

class FaultChainTest : public ::testing::TestWithParam<Chain> {
 protected:
  static constexpr int64_t kChainSteps = 300;

  static TrainingJob::Options ChainOptions(Chain::Workers workers) {
    TrainingJob::Options options;
    options.pictures = 600;
    options.set = {"lease=2s", "checkpoint.every_steps=20",
                   absl::StrCat("train_steps=", kChainSteps)};
    if (workers == Chain::Workers::kBuiltIn) return options;
    if (workers == Chain::Workers::kMirrored) {
      options.set.push_back("strategy.kind=MULTI_WORKER_MIRRORED");
      return options;
    }
    UseProgram(options);
    if (workers == Chain::Workers::kProgram) {
      options.workers = 1;
    } else {
      options.set.insert(options.set.end(), {"clipping.kind=MEAN_GLOBAL_NORM",
                                             "clipping.limit=50"});
    }
    return options;
  }
  static const std::string& Undisturbed(Chain::Workers workers) {
    static auto& jobs =
        *new std::map<Chain::Workers, std::unique_ptr<TrainingJob>>();
    std::unique_ptr<TrainingJob>& job = jobs[workers];
    if (job == nullptr) {
      TrainingJob::Options plain = ChainOptions(workers);
      plain.tls = false;
      job = TrainingJob::Make(plain);
      EXPECT_THAT(job->Run(), IsOk());
    }
    return job->checkpoints();
  }
  // Kills ps 1, which loses its state, and the victim of the chain.
  static void LoseState(TrainingJob& job, const Chain& chain) {
    job.cluster().Kill("ps", 1).IgnoreError();  // it may have ended
    job.cluster().Kill(chain.process, chain.index).IgnoreError();
    for (const std::string& file : job.StateFiles()) {
      if (!absl::StrContains(file, ".ps-1.")) continue;
      std::filesystem::remove(absl::StrCat(job.state_directory(), "/", file));
    }
  }
  // Starts all tasks at first, then those that were killed.
  static void StartNext(TrainingJob& job, const Chain& chain) {
    if (job.cluster().Process(chain.process, chain.index).ok()) {
      ASSERT_THAT(job.cluster().Start(chain.process, chain.index), IsOk());
      if (!chain.without_state || chain.process == "ps") return;
      ASSERT_THAT(job.cluster().Start("ps", 1), IsOk());
    } else {
      ASSERT_THAT(job.StartAll(), IsOk());
    }
  }
  static void StartWithCheckpoint(TrainingJob& job) {
    ASSERT_THAT(job.StartAll(), IsOk());
    ASSERT_THAT(
        job.cluster().WaitForLog("chief", 0, "checkpoint of step", kPatience),
        IsOk());
  }
  static void MakeJob(const Chain& chain, std::unique_ptr<TrainingJob>& job) {
    job = TrainingJob::Make(ChainOptions(chain.workers));
    if (chain.without_state) StartWithCheckpoint(*job);
  }
  // The task dies at the point. On a busy machine, where all steps are made
  // while one checkpoint is written, the job may end before, with the same
  // bits: then in a new job.
  static void DieAt(const std::string& point, const Chain& chain,
                    std::unique_ptr<TrainingJob>& job) {
    std::cout << chain.process << " " << chain.index << " dies at " << point
              << std::endl;
    for (int jobs = 1;; ++jobs) {
      if (chain.without_state) LoseState(*job, chain);
      job->cluster().SetEnvironment(
          chain.process, chain.index, "LOCKSTEP_FAULT",
          absl::StrCat(point, ":", chain.nth, ":kill"));
      ASSERT_NO_FATAL_FAILURE(StartNext(*job, chain));
      const auto end =
          job->cluster().Wait(chain.process, chain.index, kPatience);
      ASSERT_THAT(end, IsOk()) << point;
      if (*end == cli::TaskExit{.signal = SIGKILL}) return;
      ASSERT_EQ(*end, cli::TaskExit{}) << point;
      ASSERT_LT(jobs, 3) << point << " was not passed";
      ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk()) << point;
      ExpectSameBits(Undisturbed(chain.workers), job->checkpoints(),
                     kChainSteps);
      ASSERT_NO_FATAL_FAILURE(MakeJob(chain, job));
    }
  }
};

TEST_P(FaultChainTest, JobEndsWithTheSameBits) {
  const Chain& chain = GetParam();
  std::unique_ptr<TrainingJob> job;
  ASSERT_NO_FATAL_FAILURE(MakeJob(chain, job));
  for (const std::string& point : chain.points) {
    ASSERT_NO_FATAL_FAILURE(DieAt(point, chain, job));
  }
  job->cluster().UnsetEnvironment(chain.process, chain.index, "LOCKSTEP_FAULT");
  if (!chain.without_successor) {
    ASSERT_THAT(job->cluster().Start(chain.process, chain.index), IsOk());
  }
  for (const auto& [name, index] : job->Tasks()) {
    if (chain.without_successor && name == chain.process &&
        index == chain.index) {
      continue;
    }
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{}))
        << name << " " << index;
  }
  ExpectSameBits(Undisturbed(chain.workers), job->checkpoints(), kChainSteps);
  EXPECT_THAT(job->StateFiles(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Chains, FaultChainTest, ::testing::ValuesIn(Chains()),
    [](const auto& info) {
      return absl::StrCat(
          absl::StrReplaceAll(info.param.points.front(), {{".", "_"}}),
          info.param.workers == Chain::Workers::kClipped ? "_clipped" : "",
          info.param.workers == Chain::Workers::kMirrored ? "_mirrored" : "",
          info.param.nth > 1 ? absl::StrCat("_", info.param.nth) : "");
    });

}  // namespace
}  // namespace lockstep::testing
