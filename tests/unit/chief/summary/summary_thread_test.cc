#include "chief/summary/summary_thread.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::StartsWith;

JobConfig JobWith(const std::string& directory) {
  JobConfig job;
  job.summary.directory = directory;
  job.summary.every = absl::Hours(1);
  return job;
}

SummarySample Training() {
  SummarySample sample;
  sample.job.state = JobState::kTraining;
  sample.job.global_step = 3;
  return sample;
}

TEST(SummaryThreadTest, LastPointsAreWrittenAtTheEnd) {
  const TempDir dir;
  {
    SummaryThread thread(JobWith(dir.path()), absl::UnixEpoch(), Training, {});
  }
  EXPECT_TRUE(std::filesystem::exists(
      dir.path() + "/events.out.tfevents.0000000000000000.lockstep"));
}

TEST(SummaryThreadTest, AJobThatHasNotBegunWritesNothing) {
  const TempDir dir;
  {
    SummaryThread thread(JobWith(dir.path() + "/s"), absl::UnixEpoch(),
                         [] { return SummarySample{}; }, {});
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/s"));
}

TEST(SummaryThreadTest, TroubleIsToldOnceUntilItEnds) {
  std::vector<std::string> troubles;
  JobConfig job = JobWith("/dev/null/s");
  job.summary.every = absl::Milliseconds(1);
  Mutex mutex;
  CondVar changed;
  int samples = 0;
  {
    SummaryThread thread(
        job, absl::UnixEpoch(),
        [&] {
          MutexLock lock(mutex);
          ++samples;
          changed.Signal();
          SummarySample sample = Training();
          sample.job.global_step = samples;
          return sample;
        },
        [&](const std::string& trouble) { troubles.push_back(trouble); });
    MutexLock lock(mutex);
    while (samples < 3) changed.Wait(mutex);
  }
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_THAT(troubles[0], StartsWith("summary.directory: "));
}

}  // namespace
}  // namespace lockstep::chief
