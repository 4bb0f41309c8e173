// Elastic jobs of mirrors: a worker takes part with its mirror.

#include "chief/members/membership_table.h"
#include "chief/operators/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

JobConfig ElasticMirrors() {
  JobConfig job;
  job.replicas_to_aggregate = job.total_num_replicas = 3;
  job.elastic_workers = true;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  return job;
}

class SettingsTableMirrorsTest : public ::testing::Test {
 protected:
  SettingsTableMirrorsTest() {
    settings_table_.Open(InitialSettings(ElasticMirrors()));
  }

  const JobConfig job_ = ElasticMirrors();
  SettingsTable settings_table_{job_};
};

TEST_F(SettingsTableMirrorsTest, WorkerJoinsOnceItsMirrorIsThere) {
  settings_table_.Leave(2, SettingsTable::WhyOut::kAway);
  MembershipTable::Member mirror;
  const auto join = [&] {
    return settings_table_.Join(2, /*again=*/true, mirror);
  };

  EXPECT_THAT(join(), StatusIs(kUnavailable, HasSubstr("has registered")));
  EXPECT_THAT(settings_table_.wanted().workers, ElementsAre(0, 1));
  mirror.state = MembershipTable::State::kAlive;
  EXPECT_THAT(join(), StatusIs(kUnavailable, HasSubstr("step boundary")));
  EXPECT_THAT(settings_table_.wanted().workers, ElementsAre(0, 1, 2));
}

TEST_F(SettingsTableMirrorsTest, WorkerBeyondTheClusterHasNoMirrorToWaitFor) {
  EXPECT_THAT(settings_table_.Join(3, /*again=*/false, {}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("worker 3 has no mirror")));
  EXPECT_THAT(settings_table_.wanted().workers, ElementsAre(0, 1, 2));
}

TEST_F(SettingsTableMirrorsTest, WorkerOfTheFirstMirrorStays) {
  EXPECT_THAT(settings_table_.Change({.remove_worker = 0}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("worker 0 cannot be taken out")));
  EXPECT_FALSE(settings_table_.IsToLeave(0));
  EXPECT_OK(settings_table_.Change({.remove_worker = 1}));
}

TEST_F(SettingsTableMirrorsTest, MirrorThatWasLeftOutMustBeStartedAgain) {
  const RunSettings now = settings_table_.wanted();
  const TaskId ps{TaskType::kPs, 2};
  MembershipTable::Member mirror;
  mirror.state = MembershipTable::State::kLeft;
  const auto check = [&](bool again) {
    return settings_table_.CheckTakesPart(ps, again, now, mirror);
  };

  EXPECT_OK(check(/*again=*/true));
  mirror.left_out = true;
  mirror.leave_reason = "ps 2: no memory";
  EXPECT_THAT(check(/*again=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cannot take part: ps 2: no")));
  EXPECT_OK(check(/*again=*/false));
}

}  // namespace
}  // namespace lockstep::chief
