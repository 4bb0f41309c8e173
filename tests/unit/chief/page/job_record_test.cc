#include "chief/page/job_record.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

SummarySample SampleAt(int64_t step) {
  SummarySample sample;
  sample.now = absl::UnixEpoch() + absl::Seconds(step);
  sample.job.state = JobState::kTraining;
  sample.job.global_step = step;
  sample.job.steps_per_second = 1;
  sample.learning_rate = 0.5;
  MembershipTable::Member worker;
  worker.task = {TaskType::kWorker, 0};
  worker.state = MembershipTable::State::kAlive;
  worker.incarnation = 1;
  worker.progress.passes = step;
  worker.progress.computed = step;
  worker.progress.loss = 1.0 / static_cast<double>(step);
  sample.members = {worker};
  return sample;
}

JobRecord Recorded(int64_t steps) {
  JobRecord record;
  const StepTimes::Quantiles times{absl::Milliseconds(10),
                                   absl::Milliseconds(30)};
  for (int64_t step = 1; step <= steps; ++step) {
    record.Add(SampleAt(step), &times);
  }
  return record;
}

TEST(JobRecordTest, CurvesAreOfTheJobAndItsEvaluator) {
  JobRecord record;
  SummarySample sample = SampleAt(4);
  sample.job.evaluation = {.step = 2, .loss = 0.25, .accuracy = 0.75};
  const StepTimes::Quantiles times{absl::Milliseconds(10),
                                   absl::Milliseconds(30)};
  record.Add(sample, &times);
  EXPECT_EQ(record.Points("loss").back(), (CurvePoint{4, 4, 0.25}));
  EXPECT_EQ(record.Points("learning_rate").back().value, 0.5);
  EXPECT_EQ(record.Points(JobRecord::kMedian).back().value, 0.01);
  EXPECT_EQ(record.Points(JobRecord::kP99).back().value, 0.03);
  EXPECT_EQ(record.Points("evaluator/accuracy").back(),
            (CurvePoint{2, 4, 0.75}));
  EXPECT_TRUE(record.Points("worker_0").empty());
}

TEST(JobRecordTest, AJobThatGoesBackHasNoScoresOfLaterSteps) {
  JobRecord record;
  SummarySample sample = SampleAt(4);
  sample.job.evaluation = {.step = 2, .loss = 0.25, .accuracy = 0.75};
  record.Add(sample, nullptr);
  record.GoBack(3);
  EXPECT_EQ(record.Points("evaluator/accuracy").size(), 1u);
  EXPECT_TRUE(record.Points("loss").empty());
  record.GoBack(0);
  EXPECT_TRUE(record.Points("evaluator/accuracy").empty());
}

TEST(JobRecordTest, AJobThatStartsHasNoPoints) {
  JobRecord record;
  SummarySample sample = SampleAt(4);
  sample.job.state = JobState::kStarting;
  const StepTimes::Quantiles times{absl::Milliseconds(10),
                                   absl::Milliseconds(30)};
  record.Add(sample, &times);
  EXPECT_TRUE(record.Points("learning_rate").empty());
  EXPECT_TRUE(record.Points(JobRecord::kMedian).empty());
}

TEST(JobRecordTest, ARestartedChiefGoesOnInTheSameCurves) {
  const JobRecord before = Recorded(20);
  auto after = JobRecord::FromJson(before.ToJson("job-1"), "job-1");
  ASSERT_OK(after);
  EXPECT_EQ(after->ToJson("job-1"), before.ToJson("job-1"));
  // Servers have lost the last steps.
  after->Add(SampleAt(15), nullptr);
  const std::vector<CurvePoint> loss = after->Points("loss");
  EXPECT_EQ(loss.size(), 16u);
  EXPECT_EQ(loss.back().step, 15);
  EXPECT_EQ(loss.front().step, 1);
}

TEST(JobRecordTest, OtherTextIsRefused) {
  const std::string good = Recorded(3).ToJson("job-1");
  EXPECT_THAT(JobRecord::FromJson(good, "job-2"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another job")));
  struct Change {
    const char* from;
    const char* to;
    const char* where;
  };
  for (const auto& [from, to, where] :
       {Change{"\"stride\":1", "\"stride\":0", "curves."},
        Change{"\"stride\":1", "\"stride\":1e300", "curves."},
        Change{"\"points\":[[", "\"points\":[[],[", "curves."},
        Change{"\"points\":[[", "\"points\":[7,[", "curves."},
        Change{"\"points\":[[", "\"points\":[[[", "record"},
        Change{"\"curves\":", "\"other\":", "record"},
        Change{"[1.0,1.0,", "[9.0,1.0,", "curves."},
        Change{"[1.0,1.0,", "[\"x\",1.0,", "curves."},
        Change{"[1.0,1.0,", "[1.0,1e308,", "curves."},
        Change{"\"story\":[", "\"story\":[[1e308,\"death\",\"\"],", "story"},
        Change{"\"story\":[", "\"story\":[7,", "story"},
        Change{"{\"job\"", "[{\"job\"", "record"}}) {
    const std::string bad = absl::StrReplaceAll(good, {{from, to}});
    ASSERT_NE(bad, good) << from;
    EXPECT_THAT(JobRecord::FromJson(bad, "job-1"),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(where)))
        << to;
  }
  EXPECT_THAT(
      JobRecord::FromJson("[" + good + "]", "job-1"),
      StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("record")));
}

TEST(JobRecordTest, MoreCurvesOrPointsThanARecordHasAreRefused) {
  const auto parse = [](const std::string& curves) {
    return JobRecord::FromJson(
        absl::StrCat(R"({"job": "j", "story": [], "curves": {)", curves, "}}"),
        "j");
  };
  std::string curves = R"("0": {"stride": 1, "points": []})";
  for (size_t i = 1; i < JobRecord::kMostCurves; ++i) {
    absl::StrAppend(&curves, ",\"", i, "\": {\"stride\": 1, \"points\": []}");
  }
  EXPECT_OK(parse(curves));
  EXPECT_THAT(
      parse(curves + R"(,"x": {"stride": 1, "points": []})"),
      StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("record")));
  std::string points = "[1,1,1]";
  for (size_t i = 1; i < Curve::kMostPoints; ++i) points += ",[1,1,1]";
  EXPECT_OK(parse(R"("x": {"stride": 1, "points": [)" + points + "]}"));
  EXPECT_THAT(
      parse(R"("x": {"stride": 1, "points": [)" + points + ",[1,1,1]]}"),
      StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("curves.x")));
}

TEST(JobRecordTest, EventsOfANewerProgramAreLeftOut) {
  const std::string good = Recorded(3).ToJson("job-1");
  ASSERT_EQ(JobRecord::FromJson(good, "job-1")->Events().size(), 1u);
  const std::string newer =
      absl::StrReplaceAll(good, {{"\"state\"", "\"miracle\""}});
  const auto read = JobRecord::FromJson(newer, "job-1");
  ASSERT_OK(read);
  EXPECT_TRUE(read->Events().empty());
  EXPECT_EQ(read->Points("loss").size(), 3u);
}

TEST(JobRecordTest, ALongJobWithManyFiguresTakesBoundedMemory) {
  JobRecord record;
  for (int64_t step = 1; step <= 3000; ++step) {
    SummarySample sample = SampleAt(step);
    for (int i = 0; i < 50; ++i) {
      sample.members[0].progress.figures.push_back(
          {absl::StrCat("figure_", i), static_cast<double>(step)});
    }
    record.Add(sample, nullptr);
  }
  EXPECT_LT(record.ToJson("job").size(), 1'000'000u);
  EXPECT_EQ(record.Points("loss").back().step, 3000);
  EXPECT_FALSE(record.Points("figure_0").empty());
  EXPECT_TRUE(record.Points("figure_49").empty());
}

}  // namespace
}  // namespace lockstep::chief
