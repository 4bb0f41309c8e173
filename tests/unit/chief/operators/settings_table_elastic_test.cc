// Workers that join and leave an elastic job.

#include <optional>

#include "chief/operators/settings_table.h"
#include "common/base/stop_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/operators/settings_table_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::ElasticJobOf;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::JobOf;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kImpossible = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

class SettingsTableElasticTest : public testing::SettingsTableFixture {};

TEST_F(SettingsTableElasticTest, BackupsStayWhenWorkersJoinAndLeave) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  EXPECT_THAT(settings_table.Join(5, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 3);

  settings_table.Leave(1);
  settings_table.Leave(2);
  settings_table.Leave(0);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(5));
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 1);

  settings_table.Join(0, /*again=*/false).IgnoreError();
  settings_table.Join(1, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

TEST_F(SettingsTableElasticTest, GradientsStayWhenThePolicySaysSo) {
  SettingsTable& settings_table =
      Open(ElasticJobOf(2, 3, ElasticPolicy::kFixedReplicasToAggregate));

  settings_table.Join(3, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);

  for (int worker : {0, 1, 2}) settings_table.Leave(worker);
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 1);

  settings_table.Join(4, /*again=*/false).IgnoreError();
  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

TEST_F(SettingsTableElasticTest, AnOperatorChangesWhatThePolicyFixes) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  ASSERT_OK(settings_table.Change({.replicas_to_aggregate = 3}));

  settings_table.Join(3, /*again=*/false).IgnoreError();

  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 4);
}

// All workers would fail, as none has a batch of its share.
TEST_F(SettingsTableElasticTest, NoWorkerJoinsForWhichThereAreTooFewExamples) {
  JobConfig job = ElasticJobOf(3, 3);
  job.batch_size = 500;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(1797);
  settings_table.KnowExamples(0);  // a program that does not count them

  EXPECT_THAT(
      settings_table.Join(3, /*again=*/false),
      StatusIs(kImpossible, HasSubstr("batch_size is 500, but 1797 examples "
                                      "over 4 workers are 449 each")));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  // Those of the job may come back, and another one in the place of one.
  EXPECT_THAT(settings_table.Join(2, /*again=*/false), StatusIs(kUnavailable));
  settings_table.Leave(1);
  EXPECT_THAT(settings_table.Join(3, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2, 3));
}

TEST_F(SettingsTableElasticTest, EachReplicaOfAWorkerThatJoinsNeedsABatch) {
  JobConfig job = ElasticJobOf(1, 1);
  job.batch_size = 250;
  job.strategy.replicas_per_worker = 2;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(999);
  EXPECT_THAT(
      settings_table.Join(1, /*again=*/false),
      StatusIs(kImpossible, HasSubstr("2 workers of 2 replicas are 249 each")));
  settings_table.KnowExamples(1000);
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
}

TEST_F(SettingsTableElasticTest, WorkersOfSharedWorkNeedNoBatchOfTheirOwn) {
  JobConfig job = ElasticJobOf(8, 2);
  job.work = Work::kShared;
  job.batch_size = 16;
  job.micro_batches_per_step = 8;
  SettingsTable& settings_table = Open(job);
  settings_table.KnowExamples(4);
  EXPECT_THAT(settings_table.Join(5, /*again=*/false), StatusIs(kUnavailable));
}

TEST_F(SettingsTableElasticTest, JoinOfAWorkerThatTakesPartChangesNothing) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));

  EXPECT_EQ(settings_table.wanted().revision, 0);
}

TEST_F(SettingsTableElasticTest, AProcessThatWasTakenOutDoesNotJoinAgain) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  settings_table.Leave(1);

  const absl::Status again = settings_table.Join(1, /*again=*/true);

  EXPECT_TRUE(IsHeld(again)) << again;
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/true), StatusIs(kUnavailable));
}

// The chief that it joined may have lost its memory.
TEST_F(SettingsTableElasticTest, WorkerOfAnEarlierChiefJoinsAgain) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  EXPECT_THAT(settings_table.Join(4, /*again=*/true), StatusIs(kUnavailable));

  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2, 4));
}

TEST_F(SettingsTableElasticTest, TheLastWorkerStays) {
  SettingsTable& settings_table = Open(ElasticJobOf(1, 1));

  EXPECT_THAT(settings_table.Change({.remove_worker = 0}),
              StatusIs(kImpossible, HasSubstr("the last one")));
  settings_table.Leave(0);

  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0));
}

TEST_F(SettingsTableElasticTest, AWorkerIsToLeaveUntilItHasLeft) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  EXPECT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));
  EXPECT_TRUE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  settings_table.Leave(1);
  EXPECT_FALSE(settings_table.IsToLeave(1));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_EQ(settings_table.wanted().revision, 1);
}

TEST_F(SettingsTableElasticTest, DeadWorkerIsTakenOutOnlyIfAnOperatorHasAsked) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));

  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_EQ(settings_table.wanted().revision, 1);
}

TEST_F(SettingsTableElasticTest, RemovalStaysWantedWhileTheTableIsClosed) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Close("the job is finishing");

  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);

  EXPECT_TRUE(settings_table.IsToLeave(1));
  settings_table.Open(InitialSettings(ElasticJobOf(2, 3)));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
}

TEST_F(SettingsTableElasticTest,
       RestartOfAWorkerThatDiedBeforeItsRemovalIsToldOfIt) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  ASSERT_OK(settings_table.Change({.remove_worker = 1}));
  settings_table.Leave(1, SettingsTable::WhyOut::kIfAsked);

  const absl::Status restarted = settings_table.Join(1, /*again=*/false);

  EXPECT_TRUE(IsHeld(restarted)) << restarted;
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 2));
  EXPECT_THAT(settings_table.Join(1, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(settings_table.wanted().workers, ElementsAre(0, 1, 2));
}

TEST_F(SettingsTableElasticTest, RemovalMayBeAskedForAgain) {
  SettingsTable& settings_table = Open(ElasticJobOf(1, 2));
  ASSERT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));

  EXPECT_THAT(settings_table.Change({.remove_worker = 1}), IsOkAndHolds(1));
  EXPECT_THAT(settings_table.Change({.remove_worker = 0}),
              StatusIs(kImpossible, HasSubstr("the last one")));
}

TEST_F(SettingsTableElasticTest, NoWorkerJoinsAJobThatIsOver) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));
  // The last steps may be lost, and then be made again.
  settings_table.Close("the job is finishing");
  EXPECT_THAT(settings_table.Join(3, /*again=*/false), StatusIs(kUnavailable));

  settings_table.Close("the job is over", /*over=*/true);

  EXPECT_THAT(settings_table.Join(3, /*again=*/false),
              StatusIs(kImpossible, HasSubstr("the job is over")));
}

TEST_F(SettingsTableElasticTest, WorkersOfOtherJobsStayAsTheyAre) {
  SettingsTable& settings_table = Open(JobOf(2, 3));

  EXPECT_THAT(settings_table.Join(3, /*again=*/false),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("elastic_workers: true")));
  EXPECT_THAT(settings_table.Change({.remove_worker = 1}),
              StatusIs(kImpossible, HasSubstr("elastic_workers: true")));
  EXPECT_THAT(settings_table.wanted().workers, IsEmpty());
}

TEST_F(SettingsTableElasticTest, WorkersOutOfRangeAreRefused) {
  SettingsTable& settings_table = Open(ElasticJobOf(2, 3));

  EXPECT_THAT(settings_table.Join(RunSettings::kMaxWorkers, /*again=*/false),
              StatusIs(kInvalid));
  EXPECT_THAT(settings_table.Join(-1, /*again=*/false), StatusIs(kInvalid));
  EXPECT_THAT(settings_table.Change({.remove_worker = 7}),
              StatusIs(kInvalid, HasSubstr("none of the workers 0, 1, 2")));
}

TEST_F(SettingsTableElasticTest, AChiefThatIsStartedAgainKeepsTheFixedNumber) {
  SettingsTable settings_table(ElasticJobOf(2, 2));
  settings_table.Open(
      {.revision = 4, .replicas_to_aggregate = 3, .workers = {0, 1, 2, 3, 4}});

  settings_table.Leave(4);

  EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
}

// At the end of its range, the number in effect is not the one that was fixed.
TEST_F(SettingsTableElasticTest,
       AChiefThatIsStartedAmongFewWorkersKeepsTheJobsNumber) {
  const RunSettings one_left = {
      .revision = 4, .replicas_to_aggregate = 1, .workers = {5}};
  for (const ElasticPolicy policy :
       {ElasticPolicy::kFixedBackups,
        ElasticPolicy::kFixedReplicasToAggregate}) {
    SettingsTable settings_table(ElasticJobOf(2, 3, policy));
    settings_table.Open(one_left);
    for (const int worker : {0, 1}) {
      settings_table.Join(worker, /*again=*/false).IgnoreError();
    }
    EXPECT_EQ(settings_table.wanted().replicas_to_aggregate, 2);
  }
}

}  // namespace
}  // namespace lockstep::chief
