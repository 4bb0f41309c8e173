#include "chief/page/recorder.h"

#include <filesystem>
#include <future>
#include <map>
#include <string>

#include "common/checkpoint/files/posix_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::testing::StartsWith;

std::string FileIn(const testing::TempDir& directory) {
  return (std::filesystem::path(directory.path()) / Recorder::kFile).string();
}

// The record that a recorder of "job-1" has left.
absl::StatusOr<JobRecord> Written(const testing::TempDir& directory) {
  const auto text = ReadWholeFile(FileIn(directory), 1 << 20);
  return text.ok() ? JobRecord::FromJson(*text, "job-1") : text.status();
}

// The job's past is on the page of a chief that is started again.
TEST(RecorderTest, RecordOutlivesTheChief) {
  testing::TempDir directory;
  SummarySample sample;
  sample.now = absl::UnixEpoch() + absl::Seconds(100);
  sample.job.state = JobState::kTraining;
  sample.job.global_step = 7;
  sample.learning_rate = 0.5;
  // Every second a sample is taken. This thread may be held up for longer, but
  // the first sample, which alone is written at once, must have all notes.
  std::promise<void> noted;
  const auto sample_once_noted = [&, all = noted.get_future().share()] {
    all.wait();
    return sample;
  };
  const Recorder::Options options{directory.path(), "job-1", sample_once_noted,
                                  [] { return JobStatus(); }};
  {
    Recorder first(options);
    first.Note(TrainingBegun{0}, sample.now);
    first.Note(StepReached{7}, sample.now + absl::Seconds(7));
    noted.set_value();
  }
  sample.job.global_step = 9;
  { Recorder second(options); }
  const auto record = Written(directory);  // before the third one may write
  Recorder third(options);
  const std::map<std::string, std::string> begins = {
      {"/", "<!DOCTYPE html>"}, {"/status.json", "{"}, {"/curves.json", "{"}};
  EXPECT_EQ(third.Pages().size(), begins.size());
  for (const StatusPage& page : third.Pages()) {
    EXPECT_TRUE(page.is_private) << page.path;
    ASSERT_TRUE(begins.contains(page.path)) << page.path;
    EXPECT_THAT(page.body(), StartsWith(begins.at(page.path)));
  }
  ASSERT_OK(record);
  EXPECT_EQ(record->Points("learning_rate").size(), 2u);
  EXPECT_NEAR(record->Points(JobRecord::kMedian).back().value, 1, 0.03);
}

// `--fresh` and `--from`: an earlier chief has written later steps.
TEST(RecorderTest, TheScoresOfStepsThatAreMadeAnewAreGone) {
  testing::TempDir directory;
  ASSERT_OK(WriteWholeFile(
      FileIn(directory),
      R"({"job": "job-1", "story": [], "curves": {"evaluator/accuracy":
          {"stride": 1, "points": [[500, 10, 0.5], [1000, 20, 0.9]]}}})"));
  SummarySample sample;
  sample.job.state = JobState::kDone;
  const Recorder::Options options{directory.path(), "job-1",
                                  [&] { return sample; },
                                  [] { return JobStatus(); }};
  {
    Recorder from(options);
    from.Note(TrainingBegun{500}, absl::UnixEpoch());
  }
  ASSERT_OK(Written(directory));
  EXPECT_EQ(Written(directory)->Points("evaluator/accuracy").size(), 1u);
  {
    Recorder fresh(options);
    fresh.Note(TrainingBegun{0}, absl::UnixEpoch());
  }
  ASSERT_OK(Written(directory));
  EXPECT_TRUE(Written(directory)->Points("evaluator/accuracy").empty());
}

TEST(RecorderTest, TheScoresOfStepsThatAreLostAreGone) {
  testing::TempDir directory;
  ASSERT_OK(WriteWholeFile(
      FileIn(directory),
      R"({"job": "job-1", "story": [], "curves": {"evaluator/accuracy":
          {"stride": 1, "points": [[500, 10, 0.5], [1000, 20, 0.9]]}}})"));
  SummarySample sample;
  sample.job.state = JobState::kDone;
  {
    Recorder recorder({directory.path(), "job-1", [&] { return sample; },
                       [] { return JobStatus(); }});
    recorder.Note(TrainingBegun{1000}, absl::UnixEpoch());
    recorder.Note(WentBack{500}, absl::UnixEpoch());
  }
  ASSERT_OK(Written(directory));
  EXPECT_EQ(Written(directory)->Points("evaluator/accuracy").size(), 1u);
}

TEST(RecorderTest, AStepAfterAPauseIsNoLongerThanOthers) {
  testing::TempDir directory;
  SummarySample sample;
  sample.job.state = JobState::kDone;
  sample.job.global_step = 2;
  absl::Time now = absl::UnixEpoch() + absl::Seconds(100);
  {
    Recorder recorder({directory.path(), "job-1", [&] { return sample; },
                       [] { return JobStatus(); }});
    recorder.Note(SettingsInEffect{}, now);
    recorder.Note(TrainingBegun{0}, now);
    recorder.Note(StepReached{1}, now += absl::Seconds(1));
    recorder.Note(SettingsInEffect{{.paused = true}}, now);
    recorder.Note(SettingsInEffect{}, now += absl::Hours(1));
    recorder.Note(StepReached{2}, now += absl::Seconds(1));
  }
  const auto record = Written(directory);
  ASSERT_OK(record);
  EXPECT_NEAR(record->Points(JobRecord::kP99).back().value, 1, 0.03);
}

}  // namespace
}  // namespace lockstep::chief
