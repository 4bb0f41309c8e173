#include "chief/page/recorder.h"

#include <filesystem>

#include "common/checkpoint/files/posix_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::testing::HasSubstr;

// The job's past is on the page of a chief that is started again.
TEST(RecorderTest, RecordOutlivesTheChief) {
  testing::TempDir directory;
  SummarySample sample;
  sample.now = absl::UnixEpoch() + absl::Seconds(100);
  sample.job.state = JobState::kTraining;
  sample.job.global_step = 7;
  sample.learning_rate = 0.5;
  const Recorder::Options options{directory.path(), "job-1",
                                  [&] { return sample; },
                                  [] { return JobStatus(); }};
  {
    Recorder first(options);
    first.Begin(0, sample.now);
    first.Reach(7, sample.now + absl::Seconds(7));
  }
  sample.job.global_step = 9;
  { Recorder second(options); }
  Recorder third(options);
  for (const StatusPage& page : third.Pages()) {
    EXPECT_TRUE(page.is_private) << page.path;
    if (page.path == "/") {
      EXPECT_THAT(page.body(), HasSubstr("<!DOCTYPE html>"));
    }
  }
  const std::string file =
      (std::filesystem::path(directory.path()) / Recorder::kFile).string();
  const auto text = ReadWholeFile(file, 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto record = JobRecord::FromJson(*text, "job-1");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->Points("learning_rate").size(), 2u);
  EXPECT_NEAR(record->Points(JobRecord::kMedian).back().value, 1, 0.03);
}

}  // namespace
}  // namespace lockstep::chief
