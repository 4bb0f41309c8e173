#include "chief/steps/step_driver.h"

#include <algorithm>

#include "common/text/figure_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::EndsWith;
using ::testing::StartsWith;
using Heard = StepDriver::Heard;

class StepDriverTest : public ::testing::Test {
 protected:
  StepDriverTest() {
    job_.train_steps = 100;
    job_.replicas_to_aggregate = 1;
  }

  std::vector<Take> Takes() {
    std::vector<Take> takes;
    for (const JobAction& action : out_) {
      if (const auto* take = std::get_if<Take>(&action)) takes.push_back(*take);
    }
    out_.clear();
    return takes;
  }

  JobConfig job_;
  absl::Time now_ = absl::UnixEpoch();
  JobActions out_;
};

TEST_F(StepDriverTest, EachOpeningIsARoundOfItsOwn) {
  StepDriver steps(job_, 2);
  EXPECT_FALSE(steps.opened());
  steps.Open(3, 1, steps.servers());
  EXPECT_TRUE(steps.opened());
  EXPECT_EQ(steps.step(), 3);
  const int64_t round = steps.round();
  steps.Open(3, 1, steps.servers());
  EXPECT_GT(steps.round(), round);
}

TEST_F(StepDriverTest, TakesTellTheNewestAttempt) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  EXPECT_EQ(Takes().size(), 2U);
  TakeResult prepared;
  prepared.prepared = true;
  prepared.attempt = 1;
  ASSERT_OK(steps.OnTake({steps.round(), 1, 3, {}, prepared}, now_, out_));
  steps.OnAttempt(3, 2, now_, out_);
  const std::vector<Take> takes = Takes();
  ASSERT_EQ(takes.size(), 1U);
  EXPECT_EQ(takes[0].server, 1);
  EXPECT_EQ(takes[0].attempt, 2);
}

TEST_F(StepDriverTest, AttemptOfAnotherStepIsOfNoInterest) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  out_.clear();
  steps.OnAttempt(2, 9, now_, out_);
  EXPECT_EQ(steps.attempt(), 0);
  EXPECT_TRUE(out_.empty());
  steps.OnAttempt(3, 9, now_, out_);
  EXPECT_EQ(steps.attempt(), 9);
}

TEST_F(StepDriverTest, GrantGrowsOnlyWhereTheJobNeedNotStandStill) {
  StepDriver steps(job_, 1);
  steps.Open(0, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  EXPECT_EQ(Takes().at(0).commit_until, 2);
  TakeResult answer;
  answer.prepared = true;
  answer.committed_step = 1;
  now_ += absl::Seconds(1);
  const auto heard =
      steps.OnTake({steps.round(), 0, 0, {}, answer}, now_, out_);
  EXPECT_EQ(*heard, Heard::kStepped);
  EXPECT_FALSE(steps.MayStandStill());
  steps.Begin(/*pauses=*/true, 100, now_, out_);
  EXPECT_EQ(Takes().at(0).commit_until, 2);
  const auto step_to = [&](int64_t step) {
    answer.committed_step = step;
    now_ += absl::Seconds(1);
    ASSERT_OK(
        steps.OnTake({steps.round(), 0, step - 1, {}, answer}, now_, out_));
    ASSERT_EQ(steps.step(), step);
  };
  step_to(2);
  EXPECT_TRUE(steps.MayStandStill());
  steps.Begin(/*pauses=*/false, 100, now_, out_);
  EXPECT_EQ(Takes().at(0).commit_until, 4);
  // A checkpoint is due before the grant would end.
  step_to(3);
  steps.Begin(/*pauses=*/false, 4, now_, out_);
  EXPECT_EQ(Takes().at(0).commit_until, 4);
}

TEST_F(StepDriverTest, RoundsThatWentBackForgetLaterSteps) {
  StepDriver steps(job_, 2);
  steps.Open(8, 1, steps.servers());
  steps.GoBack(4);
  EXPECT_EQ(steps.step(), 4);
}

TEST_F(StepDriverTest, RefusalsNameTheServerButForThatOfANewerChief) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  EXPECT_THAT(
      steps.OnTake({steps.round(), 1, 3, absl::InternalError("x")}, now_, out_),
      StatusIs(absl::StatusCode::kInternal, "ps 1: x"));
  EXPECT_THAT(
      steps.OnTake({steps.round(), 1, 3, absl::AbortedError("x")}, now_, out_),
      StatusIs(absl::StatusCode::kAborted, "x"));
}

TEST_F(StepDriverTest, WaitsNameThoseThatAreNotThereFirst) {
  StepDriver steps(job_, 1);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  MembershipTable::Member busy;
  busy.task = {TaskType::kWorker, 0};
  busy.state = MembershipTable::State::kAlive;
  busy.progress.activity = "computes";
  MembershipTable::Member gone = busy;
  gone.task.index = 1;
  gone.state = MembershipTable::State::kDead;
  MembershipTable::Member missing = gone;
  missing.task.index = 2;
  missing.state = MembershipTable::State::kMissing;
  const StepWaits waits = steps.Waits({busy, gone, missing}, now_);
  EXPECT_EQ(waits.step, 4);
  EXPECT_EQ(
      waits.workers,
      "worker 1 (gone), worker 2 (not registered yet), worker 0 (computes)");
}

TEST_F(StepDriverTest, WaitsNameAFewOfManyWorkers) {
  StepDriver steps(job_, 1);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  std::vector<MembershipTable::Member> members(1000);
  for (size_t i = 0; i < members.size(); ++i) {
    members[i].task = {TaskType::kWorker, static_cast<int>(i)};
    members[i].state = MembershipTable::State::kAlive;
    members[i].progress.activity = "computes";
  }
  members[999].state = MembershipTable::State::kDead;
  const std::string workers = steps.Waits(members, now_).workers;
  EXPECT_THAT(workers, StartsWith("worker 999 (gone), worker 0 (computes), "));
  EXPECT_THAT(workers, EndsWith(", worker 18 (computes), 980 more"));
}

// It may hang: its last words tell no longer what it does.
TEST_F(StepDriverTest, WaitsSayWhichWorkerIsNotHeard) {
  StepDriver steps(job_, 1);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  MembershipTable::Member silent;
  silent.task = {TaskType::kWorker, 0};
  silent.state = MembershipTable::State::kAlive;
  silent.progress.activity = "computes";
  silent.last_heartbeat = now_;
  const auto workers = [&](absl::Duration later) {
    return steps.Waits({silent}, now_ + later).workers;
  };
  EXPECT_EQ(workers(job_.heartbeat_interval), "worker 0 (computes)");
  EXPECT_EQ(workers(4 * job_.heartbeat_interval),
            absl::StrCat("worker 0 (not heard for ",
                         FormatAge(4 * job_.heartbeat_interval), ")"));
}

TEST_F(StepDriverTest, TakesTellTheNormOnceAllServersHaveMeasured) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  for (const Take& take : Takes()) EXPECT_EQ(take.norm, std::nullopt);
  TakeResult measured;
  measured.attempt = 1;
  measured.squares = 8;
  measured.waits_for = "the norm";
  ASSERT_OK(steps.OnTake({steps.round(), 0, 3, {}, measured}, now_, out_));
  EXPECT_TRUE(Takes().empty());

  ASSERT_OK(steps.OnTake({steps.round(), 1, 3, {}, measured}, now_, out_));

  const std::vector<Take> takes = Takes();
  ASSERT_EQ(takes.size(), 2U);
  for (const Take& take : takes) EXPECT_EQ(take.norm, (MeanNorm{1, 4}));
}

// The server ends the older of two takes when the newer one arrives.
TEST_F(StepDriverTest, TakeThatANewerOneReplacedIsNotRepeated) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  const Take first = Takes().at(1);
  ASSERT_EQ(first.server, 1);
  TakeResult measured;
  measured.attempt = 1;
  measured.squares = 8;
  for (const int server : {0, 1}) {
    ASSERT_OK(
        steps.OnTake({steps.round(), server, 3, {}, measured}, now_, out_));
  }
  const Take with_norm = Takes().at(1);
  ASSERT_EQ(with_norm.server, 1);
  // Another member dies while this take is under way.
  steps.OnAttempt(3, 2, now_, out_);
  const Take newest = Takes().at(1);
  ASSERT_EQ(newest.server, 1);
  EXPECT_GT(newest.call, with_norm.call);
  const auto answer = [&](const Take& take, const absl::Status& status) {
    ASSERT_OK(
        steps.OnTake({steps.round(), 1, 3, status, {}, take.call}, now_, out_));
  };

  answer(with_norm, absl::OkStatus());
  EXPECT_TRUE(Takes().empty());
  answer(with_norm, absl::UnavailableError("gone"));
  EXPECT_EQ(steps.next(), absl::InfiniteFuture());

  answer(newest, absl::UnavailableError("gone"));
  EXPECT_LT(steps.next(), absl::InfiniteFuture());
  // It may arrive after that.
  answer(with_norm, absl::OkStatus());
  EXPECT_LT(steps.next(), absl::InfiniteFuture());
  steps.AskAgain(steps.next(), out_);
  EXPECT_EQ(Takes().size(), 1U);
}

TEST_F(StepDriverTest, CommitIsRepeatedWhateverTakesAreAnsweredMeanwhile) {
  StepDriver steps(job_, 2);
  steps.Open(3, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  TakeResult prepared;
  prepared.prepared = true;
  prepared.attempt = 1;
  const std::vector<Take> takes = Takes();
  for (const Take& take : takes) {
    ASSERT_OK(steps.OnTake(
        {steps.round(), take.server, 3, {}, prepared, take.call}, now_, out_));
  }
  out_.clear();
  ASSERT_OK(steps.OnCommit(
      {steps.round(), 4, 1, absl::UnavailableError("gone"), 0}, now_, out_));

  ASSERT_OK(steps.OnTake({steps.round(), 0, 3, {}, prepared, takes[0].call},
                         now_, out_));

  steps.AskAgain(now_ + absl::Seconds(1), out_);
  const auto commits = [](const JobAction& action) {
    return std::holds_alternative<Commit>(action);
  };
  EXPECT_TRUE(std::any_of(out_.begin(), out_.end(), commits));
}

TEST_F(StepDriverTest, ServerThatNeedsTheNormIsGrantedNothing) {
  StepDriver steps(job_, 1);
  steps.Open(0, 1, steps.servers());
  steps.Begin(false, 100, now_, out_);
  EXPECT_EQ(Takes().at(0).commit_until, 2);
  TakeResult measured;
  measured.attempt = 1;
  measured.squares = 4;
  ASSERT_OK(steps.OnTake({steps.round(), 0, 0, {}, measured}, now_, out_));
  EXPECT_EQ(Takes().at(0).norm, (MeanNorm{1, 2}));
  TakeResult prepared = measured;
  prepared.prepared = true;
  ASSERT_OK(steps.OnTake({steps.round(), 0, 0, {}, prepared}, now_, out_));
  out_.clear();
  ASSERT_OK(steps.OnCommit({steps.round(), 1, 1, {}, 0}, now_, out_));

  now_ += absl::Seconds(1);
  steps.Begin(false, 100, now_, out_);

  EXPECT_LE(Takes().at(0).commit_until, 2);
}

}  // namespace
}  // namespace lockstep::chief
