// Jobs whose workers and servers share memory, the default on one host.

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

// Names that shared memory would have, if any were in /dev/shm.
std::vector<std::string> SharedMemoryFiles() {
  std::vector<std::string> names;
  std::error_code vanished;
  for (const auto& entry :
       std::filesystem::directory_iterator("/dev/shm", vanished)) {
    const std::string name = entry.path().filename();
    if (name.find("lockstep-gradients") != std::string::npos ||
        name.find("lockstep-writes") != std::string::npos) {
      names.push_back(name);
    }
  }
  return names;
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

TEST(SharedMemoryE2eTest, BackupsShareToo) {
  auto job = TrainingJob::Make(
      {.workers = 3, .set = {"replicas_to_aggregate=2", "train_steps=100"}});

  ASSERT_THAT(job->Run(), IsOk());

  for (int worker = 0; worker < 3; ++worker) ExpectShares(*job, worker);
}

TEST(SharedMemoryE2eTest, WorkerThatIsKilledLeavesNothingBehind) {
  const MemoryDirectory state;
  auto undisturbed = TrainingJob::Make(
      {.set = ToTheEnd(), .more_args = {"--shared_memory=off"}});
  auto job =
      TrainingJob::Make({.set = ToTheEnd(), .state_directory = state.path()});
  ASSERT_THAT(undisturbed->Run(), IsOk());
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ASSERT_THAT(job->cluster().Kill("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());

  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectShares(*job, 1);
  ExpectSameBits(undisturbed->checkpoints(), job->checkpoints(), kSteps);
  EXPECT_THAT(job->StateFiles(), IsEmpty());
  EXPECT_THAT(SharedMemoryFiles(), IsEmpty());
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
  ASSERT_THAT(job->StartAll(), IsOk());
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
  EXPECT_THAT(SharedMemoryFiles(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
