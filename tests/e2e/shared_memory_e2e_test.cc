// Jobs whose workers and servers share memory, the default on one host.

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Enough steps to kill a task meanwhile.
constexpr int64_t kSteps = 250;
constexpr int64_t kFewSteps = 50;

std::vector<std::string> ToTheEnd() {
  return {"lease=1h", absl::StrCat("train_steps=", kSteps)};
}

// The servers' state directory in /dev/shm; the destructor removes it.
class MemoryDirectory {
 public:
  MemoryDirectory() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~MemoryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryDirectory(const MemoryDirectory&) = delete;
  MemoryDirectory& operator=(const MemoryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/dev/shm/lockstep-e2e-XXXXXX";
};

// Returns how many workers' gradients a server has mapped: shared memory has a
// name only there.
int MappedGradients(pid_t server) {
  std::ifstream maps(absl::StrCat("/proc/", server, "/maps"));
  int mapped = 0;
  for (std::string line; std::getline(maps, line);) {
    mapped += absl::StrContains(line, "/memfd:lockstep-gradients") ? 1 : 0;
  }
  return mapped;
}

// Expects each server to keep those of live workers, as soon as a busy machine
// allows.
void ExpectMapped(TrainingJob& job, int workers) {
  for (const int server : {0, 1}) {
    const auto process = job.cluster().Process("ps", server);
    ASSERT_THAT(process, IsOk());
    const absl::Time end = absl::Now() + kPatience;
    int mapped = MappedGradients((*process)->pid());
    while (mapped != workers && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
      mapped = MappedGradients((*process)->pid());
    }
    EXPECT_EQ(mapped, workers) << "ps " << server;
  }
}

void ExpectShares(TrainingJob& job, int worker) {
  EXPECT_THAT(job.cluster().ReadLog("worker", worker),
              IsOkAndHolds(AllOf(HasSubstr("shares memory with ps 0"),
                                 HasSubstr("shares memory with ps 1"))));
}

TEST(SharedMemoryE2eTest, SameBitsAsOverTheWire) {
  auto shared = TrainingJob::Make({.set = ToTheEnd()});
  auto sent = TrainingJob::Make(
      {.set = ToTheEnd(), .more_args = {"--shared_memory=off"}});

  ASSERT_THAT(shared->Run(), IsOk());
  ASSERT_THAT(sent->Run(), IsOk());

  ExpectShares(*shared, 0);
  ExpectShares(*shared, 1);
  EXPECT_THAT(sent->cluster().ReadLog("worker", 0),
              IsOkAndHolds(Not(HasSubstr("shares memory"))));
  ExpectSameBits(shared->checkpoints(), sent->checkpoints(), kSteps);
}

// Workers with shared memory cut and order their chunks differently.
TEST(SharedMemoryE2eTest, SomeWorkersShareAndOthersSendWithTheSameBits) {
  for (const char* type : {"VARIABLE", "BFLOAT16"}) {
    const std::vector<std::string> set = {
        "lease=1h", absl::StrCat("train_steps=", kFewSteps),
        absl::StrCat("gradient_wire_type=", type)};
    auto sent = TrainingJob::Make(
        {.workers = 3, .set = set, .more_args = {"--shared_memory=off"}});
    auto mixed = TrainingJob::Make({.workers = 3, .set = set});
    mixed->cluster().AddArgument("worker", 1, "--shared_memory=off");

    ASSERT_THAT(sent->Run(), IsOk());
    ASSERT_THAT(mixed->Run(), IsOk());

    ExpectShares(*mixed, 0);
    EXPECT_THAT(mixed->cluster().ReadLog("worker", 1),
                IsOkAndHolds(Not(HasSubstr("shares memory with"))));
    ExpectSameBits(sent->checkpoints(), mixed->checkpoints(), kFewSteps);
  }
}

// The job lasts until all three have come: two are enough for its steps.
TEST(SharedMemoryE2eTest, BackupsShareToo) {
  auto job = TrainingJob::Make(
      {.workers = 3,
       .set = {"replicas_to_aggregate=2", "train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  for (int worker = 0; worker < 3; ++worker) {
    for (const char* server : {"ps 0", "ps 1"}) {
      EXPECT_THAT(job->cluster().WaitForLog(
                      "worker", worker,
                      absl::StrCat("shares memory with ", server), kPatience),
                  IsOk());
    }
  }
  ASSERT_THAT(job->WaitForStep(100), IsOk());

  ASSERT_THAT(job->cluster().Signal("chief", 0, SIGTERM), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(cli::TaskExit{.code = kExitStopped}))
        << name << " " << index;
  }
}

TEST(SharedMemoryE2eTest, WorkerThatIsKilledLeavesNothingBehind) {
  // Many: servers are looked at while the job runs.
  constexpr int64_t kMany = 2000;
  const std::vector<std::string> set = {"lease=1h",
                                        absl::StrCat("train_steps=", kMany)};
  const MemoryDirectory state;
  auto undisturbed =
      TrainingJob::Make({.set = set, .more_args = {"--shared_memory=off"}});
  auto job = TrainingJob::Make({.set = set, .state_directory = state.path()});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  for (const char* server : {"ps 0", "ps 1"}) {
    ASSERT_THAT(job->cluster().WaitForLog(
                    "worker", 1, absl::StrCat("shares memory with ", server),
                    kPatience),
                IsOk());
  }
  ASSERT_NO_FATAL_FAILURE(ExpectMapped(*job, 2));

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kMany);
  EXPECT_THAT(job->StateFiles(), IsEmpty());
}

TEST(SharedMemoryE2eTest, SharesOfAWorkerAreAllCountedWithItAndWithout) {
  std::vector<std::string> set = ToTheEnd();
  set.push_back("replicas_to_aggregate=4");
  auto with = TrainingJob::Make({.set = set});
  auto without =
      TrainingJob::Make({.set = set, .more_args = {"--shared_memory=off"}});

  ASSERT_THAT(with->Run(), IsOk());
  ASSERT_THAT(without->Run(), IsOk());

  ExpectSameBits(with->checkpoints(), without->checkpoints(), kSteps);
}

// The state of all servers stays for the next start of the job; nothing else
// remains.
TEST(SharedMemoryE2eTest, JobThatFailsLeavesNothingButItsServersState) {
  const MemoryDirectory state;
  auto job = TrainingJob::Make(
      {.set = {"lease=4s", "max_wait=8s", "train_steps=1000000"},
       .state_directory = state.path()});
  ASSERT_THAT(job->StartServersLast(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("ps", 1), IsOk());

  for (const auto& [name, index] : job->Tasks()) {
    if (name == "ps" && index == 1) continue;
    EXPECT_THAT(job->cluster().Wait(name, index, kPatience),
                IsOkAndHolds(AllOf(Field(&cli::TaskExit::code, Gt(0)),
                                   Field(&cli::TaskExit::signal, 0))))
        << name << " " << index;
  }
  ExpectShares(*job, 0);
  EXPECT_THAT(job->StateFiles(), SizeIs(2));
}

}  // namespace
}  // namespace lockstep::testing
