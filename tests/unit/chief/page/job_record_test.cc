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
  record.Add(sample, nullptr);
  EXPECT_TRUE(record.Points("learning_rate").empty());
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
  for (const auto& [from, to] :
       {std::pair{"\"stride\":1", "\"stride\":0"},
        {"\"stride\":1", "\"stride\":1e300"},
        {"\"points\":[[", "\"points\":[[["},
        {"\"curves\":", "\"other\":"},
        {"[1.0,1.0,", "[9.0,1.0,"},
        {"[1.0,1.0,", "[\"x\",1.0,"},
        {"[1.0,1.0,", "[1.0,1e308,"},
        {"\"story\":[", "\"story\":[[1e308,\"death\",\"\"],"},
        {"\"story\":[", "\"story\":[7,"},
        {"{\"job\"", "[{\"job\""}}) {
    const std::string bad = absl::StrReplaceAll(good, {{from, to}});
    ASSERT_NE(bad, good) << from;
    EXPECT_THAT(JobRecord::FromJson(bad, "job-1"),
                StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_))
        << to;
  }
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
}

}  // namespace
}  // namespace lockstep::chief
