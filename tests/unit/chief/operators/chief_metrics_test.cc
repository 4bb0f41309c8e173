#include "chief/operators/chief_metrics.h"

#include <set>
#include <string>

#include "common/observe/progress_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = MembershipTable::State;

MembershipTable::Member Member(TaskType type, int index, State state) {
  MembershipTable::Member member;
  member.task = {type, index};
  member.state = state;
  if (state != State::kMissing) member.incarnation = 1;
  return member;
}

TEST(ChiefMetricsTest, JobStandsInGauges) {
  StatusTable::View job;
  job.state = JobState::kTraining;
  job.global_step = 42;
  job.last_checkpoint_step = 40;
  const std::string text =
      ChiefMetrics({.job = job, .learning_rate = 0.25}).ToText();
  EXPECT_THAT(text, HasSubstr("lockstep_job_state 2\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_global_step 42\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_checkpoint_step 40\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_learning_rate 0.25\n"));
}

// An alert waits for the first checkpoint of a job that saves some.
TEST(ChiefMetricsTest, JobWithoutADirectoryOfCheckpointsMissesNone) {
  EXPECT_THAT(ChiefMetrics({.saves = true}).ToText(),
              HasSubstr("lockstep_checkpoint_step -1\n"));
  EXPECT_THAT(ChiefMetrics({.saves = false}).ToText(),
              Not(HasSubstr("checkpoint")));
}

TEST(ChiefMetricsTest, AccuracyIsThereOnceACheckpointHasAScore) {
  StatusTable::View job;
  EXPECT_THAT(ChiefMetrics({.job = job, .learning_rate = 0.25}).ToText(),
              Not(HasSubstr("accuracy")));
  job.evaluation =
      StatusTable::Evaluation{.step = 5, .loss = 1, .accuracy = 0.5};
  EXPECT_THAT(ChiefMetrics({.job = job, .learning_rate = 0.25}).ToText(),
              HasSubstr("lockstep_evaluation_accuracy 0.5\n"));
}

// An alert would miss it in each job without one.
TEST(ChiefMetricsTest, AnEvaluatorThatHasNotComeIsNotMissed) {
  const MeasuredJob measured{
      .members = {Member(TaskType::kEvaluator, 0, State::kMissing),
                  Member(TaskType::kWorker, 0, State::kMissing)}};
  const std::string text = ChiefMetrics(measured).ToText();
  EXPECT_THAT(text, Not(HasSubstr("evaluator")));
  EXPECT_THAT(text, HasSubstr("lockstep_member_alive{task=\"worker\""));
  const MeasuredJob gone{
      .members = {Member(TaskType::kEvaluator, 0, State::kDead)}};
  EXPECT_THAT(ChiefMetrics(gone).ToText(),
              HasSubstr("lockstep_member_alive{task=\"evaluator\""));
}

TEST(ChiefMetricsTest, AgesAndDeathsAreThereForAlerts) {
  MembershipTable::Member worker = Member(TaskType::kWorker, 1, State::kAlive);
  worker.last_heartbeat = absl::UnixEpoch() + absl::Seconds(98);
  MeasuredJob measured{.now = absl::UnixEpoch() + absl::Seconds(100),
                       .members = {worker},
                       .train_steps = 50};
  EXPECT_THAT(ChiefMetrics(measured).ToText(),
              Not(HasSubstr("checkpoint_timestamp")));
  measured.job.last_checkpoint_step = 4;
  measured.job.last_checkpoint_at = absl::UnixEpoch() + absl::Seconds(7);
  measured.job.death_counts["worker 1"] = 3;
  measured.job.death_counts["chief"] = 1;

  const std::string text = ChiefMetrics(measured).ToText();

  EXPECT_THAT(text, HasSubstr("lockstep_checkpoint_timestamp_seconds 7\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_train_steps 50\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_member_heartbeat_age_seconds{task="
                              "\"worker\",index=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_member_deaths_total{task=\"worker\","
                              "index=\"1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_member_deaths_total{task=\"chief\","
                              "index=\"0\"} 1\n"));
}

// An alert on the increase of a counter needs its value before the first death.
TEST(ChiefMetricsTest, DeathsAreCountedFromZero) {
  MeasuredJob measured{
      .members = {Member(TaskType::kPs, 0, State::kAlive),
                  Member(TaskType::kWorker, 1, State::kDead),
                  Member(TaskType::kEvaluator, 0, State::kMissing)}};
  measured.job.death_counts["worker 1"] = 2;

  const std::string text = ChiefMetrics(measured).ToText();

  EXPECT_THAT(text, HasSubstr("lockstep_member_deaths_total{task=\"chief\","
                              "index=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_member_deaths_total{task=\"ps\","
                              "index=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_member_deaths_total{task=\"worker\","
                              "index=\"1\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("task=\"evaluator\"")));
}

TEST(ChiefMetricsTest, MembersAreAliveOrNot) {
  const std::string text =
      ChiefMetrics({.members = {Member(TaskType::kPs, 0, State::kAlive),
                                Member(TaskType::kWorker, 1, State::kDead)}})
          .ToText();
  EXPECT_THAT(text,
              HasSubstr("lockstep_member_alive{task=\"ps\",index=\"0\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("lockstep_member_alive{task=\"worker\",index=\"1\"} 0\n"));
}

TEST(ChiefMetricsTest, OnlyWorkersThatHaveComeHaveProgress) {
  MembershipTable::Member worker = Member(TaskType::kWorker, 1, State::kAlive);
  worker.progress.accepted = 3;
  const std::string text =
      ChiefMetrics(
          {.members = {Member(TaskType::kPs, 0, State::kAlive),
                       Member(TaskType::kWorker, 0, State::kMissing), worker}})
          .ToText();
  EXPECT_THAT(text, HasSubstr("lockstep_member_accepted_total{task=\"worker\","
                              "index=\"1\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("lockstep_member_accepted_total{task="
                                  "\"worker\",index=\"0\"}")));
}

TEST(ChiefMetricsTest, NoNameIsOneThatWorkersHave) {
  const MembershipTable::Member worker =
      Member(TaskType::kWorker, 1, State::kAlive);
  std::set<std::string> own;
  const MetricFamilies of_workers = ProgressMetrics(kOwnProgress, {{}});
  for (const auto& metric : of_workers.families()) {
    own.insert(metric.name);
  }
  ASSERT_FALSE(own.empty());
  const MetricFamilies of_chief = ChiefMetrics({.members = {worker}});
  for (const auto& metric : of_chief.families()) {
    EXPECT_FALSE(own.contains(metric.name)) << metric.name;
  }
}

}  // namespace
}  // namespace lockstep::chief
