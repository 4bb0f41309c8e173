// Restarts of a process leave nothing behind in the processes that live on: no
// memory, files, sockets, mappings or threads. LOCKSTEP_RESTARTS sets the
// number of restarts of a worker; servers and chiefs have a fifth as many.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using TaskName = std::pair<std::string, int>;

int Restarts() {
  int restarts = 0;
  const char* text = std::getenv("LOCKSTEP_RESTARTS");
  return text != nullptr && absl::SimpleAtoi(text, &restarts) ? restarts : 30;
}

// The system resources of a process.
struct Holdings {
  int64_t files = 0;  // descriptors, sockets among them
  int64_t mappings = 0;
  int64_t threads = 0;
  int64_t private_kib = 0;
};

int64_t Entries(const std::string& directory) {
  std::error_code gone;
  return std::distance(std::filesystem::directory_iterator(directory, gone),
                       std::filesystem::directory_iterator());
}

Holdings HoldingsOf(pid_t pid) {
  const std::string proc = absl::StrCat("/proc/", pid);
  Holdings holdings;
  holdings.files = Entries(proc + "/fd");
  holdings.threads = Entries(proc + "/task");
  std::ifstream maps(proc + "/maps");
  holdings.mappings =
      std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  std::ifstream status(proc + "/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") status >> holdings.private_kib;
  }
  return holdings;
}

class RestartGrowthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Has a backup, so that no step waits for a restarted worker. The variables
    // have 4.5 MiB: a copy that each restart left behind would exceed the
    // limit.
    job_ = TrainingJob::Make(
        {.servers = 1,
         .workers = 2,
         .set = {"train_steps=1000000000", "replicas_to_aggregate=1",
                 "lease=1h", "model.hidden_units=16384",
                 "max_part_bytes=1048576"}});
    ASSERT_THAT(job_->StartAll(), IsOk());
    ASSERT_THAT(job_->WaitForStep(10), IsOk());
  }

  // Restarts the task and waits until the successor works.
  void Restart(const std::string& name, int index, const std::string& says) {
    ASSERT_THAT(job_->cluster().Kill(name, index), IsOk());
    ASSERT_THAT(job_->cluster().Start(name, index), IsOk());
    ASSERT_THAT(job_->cluster().WaitForLog(name, index, says, kPatience),
                IsOk());
    ASSERT_THAT(job_->WaitForStep(0), IsOk());  // the chief answers
    const absl::StatusOr<JobStatus> now = job_->GetStatus();
    ASSERT_THAT(now, IsOk());
    ASSERT_THAT(job_->WaitForStep(now->step + 3), IsOk());
  }

  std::map<TaskName, Holdings> Others(const TaskName& victim) {
    std::map<TaskName, Holdings> all;
    for (const TaskName& task : job_->Tasks()) {
      if (task == victim) continue;
      const auto process = job_->cluster().Process(task.first, task.second);
      EXPECT_THAT(process, IsOk());
      all[task] = HoldingsOf((*process)->pid());
    }
    return all;
  }

  // gRPC's use of these varies a little, by less than one for each restart.
  static void ExpectNoMore(const Holdings& then, const Holdings& now,
                           int restarts) {
    const int64_t slack = restarts / 2;
    // A thread has a stack and its guard, and may have memory of its own.
    const int64_t of_threads =
        4 * std::max<int64_t>(0, now.threads - then.threads);
    EXPECT_LE(now.files, then.files + slack);
    EXPECT_LE(now.threads, then.threads + slack);
    EXPECT_LE(now.mappings, then.mappings + of_threads + slack);
    EXPECT_LE(now.private_kib,
              then.private_kib * 5 / 4 + (8 << 10) + kQuarantine / 1024);
  }

  void ExpectNoGrowth(const std::string& name, int index,
                      const std::string& says, int restarts) {
    std::map<TaskName, Holdings> before;
    const int warm_up = std::max(2, restarts / 5);
    for (int i = 0; i < restarts; ++i) {
      if (i == warm_up) before = Others({name, index});
      ASSERT_NO_FATAL_FAILURE(Restart(name, index, says));
    }
    for (const auto& [task, now] : Others({name, index})) {
      const Holdings& then = before.at(task);
      std::cout << task.first << " " << task.second << ", " << name
                << " restarted " << restarts - warm_up
                << " times: " << then.files << " -> " << now.files << " files, "
                << then.mappings << " -> " << now.mappings << " mappings, "
                << then.threads << " -> " << now.threads << " threads, "
                << then.private_kib << " -> " << now.private_kib << " KiB"
                << std::endl;
      SCOPED_TRACE(task.first);
      ExpectNoMore(then, now, restarts - warm_up);
    }
    EXPECT_EQ(job_->StateFiles().size(), 1u);
  }

  std::unique_ptr<TrainingJob> job_;
};

TEST_F(RestartGrowthTest, WorkersLeaveNothingBehind) {
  ExpectNoGrowth("worker", 1, "shares memory with ps 0", Restarts());
}

TEST_F(RestartGrowthTest, ServersLeaveNothingBehind) {
  ExpectNoGrowth("ps", 0, "holds", std::max(12, Restarts() / 5));
}

TEST_F(RestartGrowthTest, ChiefsLeaveNothingBehind) {
  ExpectNoGrowth("chief", 0, "it goes on from there",
                 std::max(12, Restarts() / 5));
}

}  // namespace
}  // namespace lockstep::testing
