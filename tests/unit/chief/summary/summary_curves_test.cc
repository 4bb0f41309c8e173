#include "chief/summary/summary_curves.h"

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using State = MembershipTable::State;

// The report of a worker at `second`.
MembershipTable::Member Worker(int index, Progress progress,
                               uint64_t incarnation = 1, int second = 0) {
  MembershipTable::Member member;
  member.task = {TaskType::kWorker, index};
  member.state = State::kAlive;
  member.incarnation = incarnation;
  member.last_heartbeat = absl::FromUnixSeconds(1000 + second);
  member.progress = std::move(progress);
  return member;
}

SummarySample At(int second, int64_t step) {
  SummarySample sample;
  sample.now = absl::FromUnixSeconds(1000 + second);
  sample.job.state = JobState::kTraining;
  sample.job.global_step = step;
  sample.learning_rate = 0.5;
  return sample;
}

std::map<std::string, double> Values(const std::vector<SummaryPoints>& runs,
                                     const std::string& run) {
  std::map<std::string, double> values;
  for (const SummaryPoints& points : runs) {
    if (points.run != run) continue;
    for (const NamedFigure& each : points.values) {
      EXPECT_TRUE(values.emplace(each.name, each.value).second) << each.name;
    }
  }
  return values;
}

TEST(SummaryCurvesTest, FirstSampleHasNoRates) {
  SummaryCurves curves;
  SummarySample sample = At(0, 7);
  sample.members = {Worker(0, {.passes = 1, .loss = 2, .examples = 10}),
                    Worker(1, {.passes = 1, .loss = 4, .examples = 10})};
  const auto runs = curves.Add(sample);
  EXPECT_THAT(Values(runs, "worker_1"), ElementsAre(Pair("loss", 4)));
  EXPECT_THAT(Values(runs, ""), ElementsAre(Pair("learning_rate", 0.5),
                                            Pair("loss", DoubleEq(3))));
  for (const SummaryPoints& points : runs) EXPECT_EQ(points.step, 7);
}

// Its passes have all been dropped, or the last that was not is long ago.
TEST(SummaryCurvesTest, AWorkerWithoutARecentLossDoesNotChangeTheJobsLoss) {
  SummaryCurves curves;
  SummarySample sample = At(0, 7);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  sample.members = {Worker(0, {.passes = 1, .loss = 2, .examples = 10}),
                    Worker(1, {.passes = 3, .loss = 0, .examples = 0}),
                    Worker(2, {.passes = 9, .loss = nan, .examples = 10})};
  const auto runs = curves.Add(sample);
  EXPECT_EQ(Values(runs, "")["loss"], 2);
  EXPECT_EQ(Values(runs, "worker_1").count("loss"), 0u);
  EXPECT_EQ(Values(runs, "worker_2").count("loss"), 0u);
}

TEST(SummaryCurvesTest, RatesAreOfTheTimeBetweenReportsAndOfAllWorkers) {
  SummaryCurves curves;
  SummarySample sample = At(0, 0);
  sample.members = {Worker(0, {.passes = 1, .examples = 10}),
                    Worker(1, {.passes = 1, .examples = 10})};
  curves.Add(sample);
  sample = At(2, 20);
  sample.job.steps_per_second = 10;
  sample.members = {
      Worker(0,
             {.passes = 21,
              .accepted = 20,
              .waiting = absl::Seconds(1),
              .examples = 210},
             1, 2),
      Worker(1, {.passes = 11, .accepted = 4, .stale = 6, .examples = 110}, 1,
             2)};
  const auto runs = curves.Add(sample);
  EXPECT_THAT(Values(runs, "worker_0"),
              UnorderedElementsAre(
                  Pair("loss", 0), Pair("examples_per_second", DoubleEq(100)),
                  Pair("passes_accepted_per_second", DoubleEq(10)),
                  Pair("passes_stale_per_second", DoubleEq(0)),
                  Pair("waiting_fraction", DoubleEq(0.5))));
  EXPECT_THAT(
      Values(runs, ""),
      UnorderedElementsAre(
          Pair("loss", 0), Pair("examples_per_second", DoubleEq(150)),
          Pair("passes_accepted_per_second", DoubleEq(12)),
          Pair("passes_stale_per_second", DoubleEq(3)),
          Pair("waiting_fraction", DoubleEq(0.25)), Pair("learning_rate", 0.5),
          Pair("steps_per_second", 10), Pair("step_seconds", DoubleEq(0.1))));
}

// Ten examples a second, half of the time waiting, told every five seconds.
TEST(SummaryCurvesTest, RatesHoldUntilTheNextReport) {
  SummaryCurves curves;
  for (int second = 0; second <= 13; ++second) {
    const int told = second / 5 * 5;
    SummarySample sample = At(second, second);
    sample.members = {Worker(0,
                             {.passes = 1 + told,
                              .waiting = absl::Seconds(0.5 * told),
                              .examples = 10 * told},
                             1, told)};
    auto values = Values(curves.Add(sample), "");
    if (second < 5) {
      EXPECT_EQ(values.count("examples_per_second"), 0u) << second;
      continue;
    }
    EXPECT_NEAR(values["examples_per_second"], 10, 1e-9) << second;
    EXPECT_NEAR(values["waiting_fraction"], 0.5, 1e-9) << second;
  }
}

TEST(SummaryCurvesTest, AWorkerThatIsSilentComputesNothing) {
  SummaryCurves curves;
  SummarySample sample = At(0, 0);
  sample.members = {Worker(0, {.passes = 1, .examples = 10})};
  curves.Add(sample);
  sample.members = {Worker(0, {.passes = 2, .examples = 20}, 1, 1)};
  for (const auto& [second, rate] :
       {std::pair{1, 10.0}, {2, 10.0}, {3, 10.0}, {4, 0.0}, {5, 0.0}}) {
    sample.now = absl::FromUnixSeconds(1000 + second);
    sample.job.global_step = second;
    EXPECT_EQ(Values(curves.Add(sample), "")["examples_per_second"], rate)
        << second;
  }
}

TEST(SummaryCurvesTest, AWorkerThatBeganAnewHasNoRatesOfItsPredecessor) {
  SummaryCurves curves;
  SummarySample sample = At(0, 0);
  sample.members = {Worker(0, {.passes = 50, .examples = 500}, 1)};
  curves.Add(sample);
  sample = At(1, 1);
  sample.members = {Worker(0, {.passes = 1, .loss = 1, .examples = 10}, 2)};
  EXPECT_THAT(Values(curves.Add(sample), "worker_0"),
              ElementsAre(Pair("loss", 1)));
}

TEST(SummaryCurvesTest, OnlyLivingWorkersThatHaveComputedHaveCurves) {
  SummaryCurves curves;
  SummarySample sample = At(0, 1);
  sample.members = {Worker(0, {.passes = 0}), Worker(1, {.passes = 3})};
  sample.members[1].state = State::kDead;
  const auto runs = curves.Add(sample);
  EXPECT_THAT(Values(runs, "worker_0"), IsEmpty());
  EXPECT_THAT(Values(runs, "worker_1"), IsEmpty());
  EXPECT_THAT(Values(runs, ""), ElementsAre(Pair("learning_rate", 0.5)));
}

TEST(SummaryCurvesTest, LastPassesOfAWorkerThatHasLeftCountOnce) {
  SummaryCurves curves;
  SummarySample sample = At(0, 1);
  sample.members = {Worker(0, {.passes = 1, .loss = 1, .examples = 10})};
  curves.Add(sample);
  sample = At(1, 2);
  sample.members = {Worker(0, {.passes = 2, .loss = 0.5, .examples = 20})};
  sample.members[0].state = State::kLeft;
  EXPECT_EQ(Values(curves.Add(sample), "")["loss"], 0.5);
  sample.job.global_step = 3;
  EXPECT_THAT(Values(curves.Add(sample), ""),
              ElementsAre(Pair("learning_rate", 0.5)));
}

TEST(SummaryCurvesTest, ASampleWithoutANewStepAddsNothingButANewScore) {
  SummaryCurves curves;
  SummarySample sample = At(0, 5);
  curves.Add(sample);
  EXPECT_THAT(curves.Add(sample), IsEmpty());
  sample.job.evaluation = StatusTable::Evaluation{
      .step = 4, .loss = 0.25, .accuracy = 0.5, .auc = 0.75};
  const auto runs = curves.Add(sample);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].step, 4);
  EXPECT_THAT(Values(runs, "evaluator"),
              UnorderedElementsAre(Pair("loss", 0.25), Pair("accuracy", 0.5),
                                   Pair("auc", 0.75)));
  EXPECT_THAT(curves.Add(sample), IsEmpty());
}

TEST(SummaryCurvesTest, AStepThatIsScoredAgainAfterItWasLostIsANewScore) {
  SummaryCurves curves;
  SummarySample sample = At(0, 5);
  sample.job.evaluation = StatusTable::Evaluation{.step = 4, .accuracy = 0.5};
  curves.Add(sample);
  sample.job.evaluation.reset();
  EXPECT_THAT(curves.Add(sample), IsEmpty());
  sample.job.evaluation = StatusTable::Evaluation{.step = 4, .accuracy = 0.75};
  EXPECT_EQ(Values(curves.Add(sample), "evaluator")["accuracy"], 0.75);
}

TEST(SummaryCurvesTest, FiguresOfAUsersProgramsAreCurves) {
  SummaryCurves curves;
  SummarySample sample = At(0, 5);
  sample.members = {
      Worker(0, {.passes = 1, .figures = {{"norm", 1}}}),
      Worker(1, {.passes = 1, .figures = {{"norm", 2}, {"seen", 8}}})};
  sample.job.evaluation =
      StatusTable::Evaluation{.step = 5, .figures = {{"test_f1", 0.5}}};
  const auto runs = curves.Add(sample);
  EXPECT_THAT(Values(runs, ""),
              UnorderedElementsAre(Pair("learning_rate", 0.5),
                                   Pair("norm", 1.5), Pair("seen", 8)));
  EXPECT_THAT(Values(runs, "evaluator"), ElementsAre(Pair("test_f1", 0.5)));
}

TEST(SummaryCurvesTest, AFigureWithTheNameOfACurveHasOneOfItsOwn) {
  SummaryCurves curves;
  SummarySample sample = At(0, 5);
  sample.members = {Worker(
      0, {.passes = 1,
          .loss = 2,
          .examples = 10,
          .figures = {
              {"loss", 6}, {"learning_rate", 7}, {"evaluator/accuracy", 8}}})};
  const auto runs = curves.Add(sample);
  EXPECT_THAT(Values(runs, ""),
              UnorderedElementsAre(Pair("loss", 2), Pair("learning_rate", 0.5),
                                   Pair("program/loss", 6),
                                   Pair("program/learning_rate", 7),
                                   Pair("program/evaluator/accuracy", 8)));
  EXPECT_EQ(Values(runs, "worker_0").size(), 4u);
}

}  // namespace
}  // namespace lockstep::chief
