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
  const std::string text = FormatMetrics(ChiefMetrics(job, {}, 0.25));
  EXPECT_THAT(text, HasSubstr("lockstep_job_state 2\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_global_step 42\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_checkpoint_step 40\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_learning_rate 0.25\n"));
}

TEST(ChiefMetricsTest, AccuracyIsThereOnceACheckpointHasAScore) {
  StatusTable::View job;
  EXPECT_THAT(FormatMetrics(ChiefMetrics(job, {}, 0.25)),
              Not(HasSubstr("accuracy")));
  job.evaluation =
      StatusTable::Evaluation{.step = 5, .loss = 1, .accuracy = 0.5};
  EXPECT_THAT(FormatMetrics(ChiefMetrics(job, {}, 0.25)),
              HasSubstr("lockstep_evaluation_accuracy 0.5\n"));
}

TEST(ChiefMetricsTest, MembersAreAliveOrNot) {
  const std::string text =
      FormatMetrics(ChiefMetrics({},
                                 {Member(TaskType::kPs, 0, State::kAlive),
                                  Member(TaskType::kWorker, 1, State::kDead)},
                                 0));
  EXPECT_THAT(text,
              HasSubstr("lockstep_member_alive{task=\"ps\",index=\"0\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("lockstep_member_alive{task=\"worker\",index=\"1\"} 0\n"));
}

TEST(ChiefMetricsTest, OnlyWorkersThatHaveComeHaveProgress) {
  MembershipTable::Member worker = Member(TaskType::kWorker, 1, State::kAlive);
  worker.progress.accepted = 3;
  const std::string text = FormatMetrics(
      ChiefMetrics({},
                   {Member(TaskType::kPs, 0, State::kAlive),
                    Member(TaskType::kWorker, 0, State::kMissing), worker},
                   0));
  EXPECT_THAT(text, HasSubstr("lockstep_member_accepted_total{task=\"worker\","
                              "index=\"1\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("lockstep_member_accepted_total{task="
                                  "\"worker\",index=\"0\"}")));
}

TEST(ChiefMetricsTest, NoNameIsOneThatWorkersHave) {
  const MembershipTable::Member worker =
      Member(TaskType::kWorker, 1, State::kAlive);
  std::set<std::string> own;
  for (const Metric& metric : ProgressMetrics(kOwnProgress, {{}})) {
    own.insert(metric.name);
  }
  ASSERT_FALSE(own.empty());
  for (const Metric& metric : ChiefMetrics({}, {worker}, 0)) {
    EXPECT_FALSE(own.contains(metric.name)) << metric.name;
  }
}

}  // namespace
}  // namespace lockstep::chief
