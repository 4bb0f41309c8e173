#include "chief/recovery/recovery_round.h"

#include <cerrno>
#include <optional>

#include "common/base/passing_error.h"
#include "common/checkpoint/files/posix_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/chief/recovery/fake_shard_calls_fixture.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using State = MembershipTable::State;

const TaskId kWorker0{TaskType::kWorker, 0};

class RecoveryRoundTest : public ::testing::Test, protected RecoverySource {
 protected:
  RecoveryRoundTest() {
    group_.Add(ps0_);
    group_.Add(ps1_);
  }

  absl::StatusOr<int64_t> LatestStep() const override {
    return latest_.ok() ? absl::StatusOr<int64_t>(checkpoint_) : latest_;
  }
  absl::StatusOr<int64_t> WholeStep() override {
    log_.push_back("whole");
    return whole_.has_value() ? *whole_ : checkpoint_;
  }
  bool BeginsAnew() const override { return anew_; }
  absl::StatusOr<std::optional<Restored>> Restore(const StateMap&) override {
    log_.push_back("restore");
    if (!restored_.ok()) return restored_;
    const int64_t step =
        whole_.has_value() ? whole_->value_or(-1) : checkpoint_;
    if (step < 0) return std::nullopt;
    return Restored{step, {}};
  }
  void OnFound(absl::Span<const ServerReport> reports) override {
    for (const ServerReport& report : reports) {
      found_ += static_cast<int>(report.workers.size());
    }
  }
  std::vector<int> EndedInput() const override { return ended_input_; }
  std::vector<int> Servers() const override { return {0, 1}; }
  void OnEpoch(uint64_t) override {}
  absl::Status OnWorking(const std::string& what) override {
    log_.push_back(what);
    clock_.Advance(pause_);
    return stop_;
  }
  absl::Status OnStartFrom(const RecoveryPlan&, bool) override {
    return start_;
  }

  // Runs a round of a chief that has seen this step committed; by default one
  // that has been through a round without result.
  absl::StatusOr<RecoveryRound::Outcome> Run(std::optional<int64_t> step = 0) {
    return round_.Run(plan_, {step, {0, 1}});
  }
  void Report(const ServerReport& report) {
    ps0_.report = ps1_.report = report;
  }

  testing::ManualClock clock_;
  JobConfig job_;
  Plan plan_;
  int64_t checkpoint_ = -1;
  absl::Status latest_;  // of LatestStep()
  // The step of the newest whole checkpoint, if that is another.
  std::optional<absl::StatusOr<int64_t>> whole_;
  bool anew_ = false;
  absl::Duration pause_ = absl::Seconds(50);  // after each answer of a server
  absl::Status stop_;
  absl::Status start_;  // of OnStartFrom()
  absl::Status restored_;
  int found_ = 0;  // workers of which servers keep something
  std::vector<int> ended_input_;
  std::vector<std::string> log_;
  FakeShardCalls ps0_{0, log_};
  FakeShardCalls ps1_{1, log_};
  ShardGroup group_;
  MembershipTable members_{{kWorker0}, absl::Seconds(2)};
  RecoveryRound round_{job_, group_, members_, *this, clock_};
};

TEST_F(RecoveryRoundTest, FreshJobStartsAtOnce) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));

  const auto outcome = Run(/*step=*/std::nullopt);

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 0);
  EXPECT_EQ(ps0_.opening.attempt, 0);
  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 4)));
  EXPECT_EQ(members_.Get(kWorker0).state, State::kAlive);
  EXPECT_THAT(log_,
              ElementsAre("epoch 1", "epoch 0", "create 0", "create 1", "whole",
                          "restore", "activate 1", "activate 0"));
}

TEST_F(RecoveryRoundTest, ServersThatComeFurtherAreWaitedForHoweverLong) {
  ps0_.works_for = 1;
  ps1_.works_for = 3;
  ps1_.total_bytes = 0;  // as long as it is not known
  const absl::Time began = clock_.Now();

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(clock_.Now() - began, 4 * pause_);
  EXPECT_THAT(log_,
              ElementsAre("epoch 1", "epoch 0",                        //
                          "create 0", "create 1",                      //
                          "ps 0 to create its variables, 10 %",        //
                          "ps 1 to create its variables",              //
                          "create 0", "create 1",                      //
                          "ps 1 to create its variables", "create 1",  //
                          "ps 1 to create its variables", "create 1",  //
                          "whole", "restore", "activate 1", "activate 0"));
}

TEST_F(RecoveryRoundTest, ServerThatStandsStillWithItsVariablesIsNamed) {
  ps1_.works_for = 100;
  ps1_.bytes_between_calls = 0;
  ps1_.done_bytes = 40;

  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                              HasSubstr("the job waits for ps 1 to create "
                                        "its variables, 40 %")));
  EXPECT_EQ(ps1_.works_for, 97);  // 0, 50 and 100 seconds later
}

TEST_F(RecoveryRoundTest, WaitForServersAtWorkCanBeEnded) {
  ps0_.works_for = 100;
  anew_ = true;
  stop_ = absl::CancelledError("asked to stop");

  EXPECT_THAT(Run(/*step=*/std::nullopt),
              StatusIs(absl::StatusCode::kCancelled));

  EXPECT_EQ(ps0_.works_for, 99);
}

// They may be reading a state that the last checkpoint of the job needs.
TEST_F(RecoveryRoundTest, ServersThatKeepTheirStateHaveALeaseToFindIt) {
  ps0_.works_for = 100;
  pause_ = job_.lease;
  stop_ = absl::CancelledError("asked to stop");

  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(ps0_.works_for, 97);  // one, two and three leases later

  // The lease is that of all rounds.
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(ps0_.works_for, 96);
}

TEST_F(RecoveryRoundTest, MirrorTakesItsStateAlthoughTheJobStops) {
  plan_.mirrored = true;
  ps0_.report = {.active = true, .committed_step = 4};
  pause_ = job_.lease / 2;
  stop_ = absl::CancelledError("asked to stop");

  const auto outcome = Run(/*step=*/4);

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->plan.copies, (std::vector<int>{1}));
  EXPECT_THAT(log_, Contains("ps 1 to take the state of step 4 from ps 0"));
  EXPECT_THAT(log_, Contains("discard 1"));
}

TEST_F(RecoveryRoundTest, MirrorOfAJobThatStopsHasALeaseToTakeItsState) {
  plan_.mirrored = true;
  ps0_.report = {.active = true, .committed_step = 4};
  pause_ = 2 * job_.lease;
  stop_ = absl::CancelledError("asked to stop");

  EXPECT_THAT(Run(/*step=*/4), StatusIs(absl::StatusCode::kCancelled));

  EXPECT_THAT(log_, Not(Contains("activate 1")));
}

TEST_F(RecoveryRoundTest, ServerThatWasKilledGoesOnWithANewAttempt) {
  Report({.committed_step = 7});

  const auto outcome = Run();

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 7);
  EXPECT_EQ(ps0_.opening.attempt, FirstAttempt(group_.epoch()));
}

TEST_F(RecoveryRoundTest, LostStateBringsAllBackAndWorkersJoinAnew) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  Report({.active = true, .committed_step = 7});
  ps1_.report = {};
  checkpoint_ = 4;

  const auto outcome = Run();

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->plan.repeated_steps, 3);
  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 5)));
  EXPECT_THAT(log_, ElementsAre("epoch 1", "epoch 0", "create 0", "create 1",
                                "whole", "discard 0", "discard 1", "restore",
                                "activate 1", "activate 0"));
}

TEST_F(RecoveryRoundTest, DamagedCheckpointIsPassedOverForAnOlderOne) {
  Report({.active = true, .committed_step = 7});
  ps1_.report = {};
  checkpoint_ = 6;
  whole_ = 4;

  const auto outcome = Run();

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->checkpoint_step, 4);
  EXPECT_EQ(outcome->plan.repeated_steps, 3);
}

TEST_F(RecoveryRoundTest, ServersKeepWhatADamagedCheckpointWouldReplace) {
  Report({.active = true, .committed_step = 7});
  checkpoint_ = 9;
  whole_ = 4;

  const auto outcome = Run(/*step=*/std::nullopt);

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->plan.action, RecoveryPlan::Action::kResume);
  EXPECT_EQ(outcome->step, 7);
  EXPECT_EQ(outcome->checkpoint_step, 4);
}

TEST_F(RecoveryRoundTest, ServersKeepWhatTheyHaveWhereNoCheckpointIsWhole) {
  Report({.active = true, .committed_step = 7});
  ps1_.report = {};
  checkpoint_ = 6;
  whole_ = absl::DataLossError("none is whole");

  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kDataLoss));

  EXPECT_THAT(
      log_, ElementsAre("epoch 1", "epoch 0", "create 0", "create 1", "whole"));
}

TEST_F(RecoveryRoundTest, RoundIsRepeatedUntilTheVolumeCanBeRead) {
  checkpoint_ = 6;
  for (const int error : {ESTALE, EMFILE, EACCES, EIO}) {
    whole_ = SystemError(error, "checkpoint");
    EXPECT_TRUE(IsPassing(Run().status())) << error;
  }
  whole_ = 4;

  const auto outcome = Run();

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
}

TEST_F(RecoveryRoundTest, JobThatStartsIsToldWhatItsVolumeLacks) {
  checkpoint_ = 6;
  whole_ = SystemError(EACCES, "checkpoint");
  EXPECT_THAT(Run(/*step=*/std::nullopt),
              StatusIs(absl::StatusCode::kPermissionDenied));

  whole_ = SystemError(ESTALE, "checkpoint");
  EXPECT_TRUE(IsPassing(Run(/*step=*/std::nullopt).status()));
}

TEST_F(RecoveryRoundTest, CheckpointsAreNotReadWhereServersGoOn) {
  Report({.active = true, .committed_step = 7});
  checkpoint_ = 6;

  ASSERT_OK(Run(/*step=*/7));

  EXPECT_THAT(log_, Not(Contains("whole")));
}

TEST_F(RecoveryRoundTest, FirstRoundOfABeginningAnewTakesNothingOver) {
  Report({.active = true, .committed_step = 7});
  anew_ = true;

  const auto outcome = Run(/*step=*/std::nullopt);

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 0);
  EXPECT_THAT(
      log_, ElementsAre("epoch 1", "epoch 0", "discard 0", "discard 1", "whole",
                        "restore", "activate 1", "activate 0"));

  log_.clear();
  ASSERT_OK(Run(/*step=*/7));
  EXPECT_THAT(log_, Contains("create 0"));
}

TEST_F(RecoveryRoundTest, ACheckpointOfANewerFormatEndsAFirstRound) {
  Report({.active = true, .committed_step = 4});
  latest_ = absl::FailedPreconditionError("a newer format");

  EXPECT_EQ(Run(/*step=*/std::nullopt).status(), latest_);
  EXPECT_THAT(log_, Not(Contains(HasSubstr("activate"))));

  // The servers' state is newer than any checkpoint of this chief's job.
  EXPECT_OK(Run(/*step=*/4));
}

TEST_F(RecoveryRoundTest, AStopBeforeTheStartLeavesTheServersTheirState) {
  Report({.committed_step = 4});
  checkpoint_ = 6;
  start_ = absl::CancelledError("asked to stop");

  EXPECT_EQ(Run(/*step=*/std::nullopt).status(), start_);

  EXPECT_THAT(log_, Not(Contains(HasSubstr("discard"))));
}

TEST_F(RecoveryRoundTest, WorkersJoinAnewWhereAnotherChiefHasGoneBack) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  Report({.active = true, .committed_step = 4});
  checkpoint_ = 4;

  const auto outcome = Run(/*step=*/7);

  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_EQ(outcome->plan.repeated_steps, 3);
  EXPECT_THAT(outcome->plan.reason, HasSubstr("another chief"));
  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 5)));
}

TEST_F(RecoveryRoundTest, WorkersAreShutOutWhenTheJobGoesBack) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  Report({.active = true, .committed_step = 7});
  ASSERT_OK(Run());
  EXPECT_THAT(ps0_.opening.workers, IsEmpty());

  ps1_.report = {};
  ASSERT_OK(Run());

  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 5)));
  EXPECT_THAT(ps0_.opening.workers, ElementsAre(WorkerStanding{0, 5}));
  EXPECT_EQ(ps1_.opening.workers, ps0_.opening.workers);
}

TEST_F(RecoveryRoundTest, WorkersThatAreNotKnownAreShutOutOfAFirstRound) {
  for (int64_t checkpoint : {-1, 4}) {
    checkpoint_ = checkpoint;

    ASSERT_OK(Run(/*step=*/std::nullopt));

    EXPECT_THAT(ps0_.opening.workers, ElementsAre(WorkerStanding{0, 0}))
        << checkpoint;
  }
}

TEST_F(RecoveryRoundTest, FreshJobAdmitsTheIncarnationsThatRegisteredAlone) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(members_.Get(kWorker0).state, State::kAlive);
  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 4)));
  EXPECT_THAT(ps0_.opening.workers, ElementsAre(WorkerStanding{0, 5}));
}

TEST_F(RecoveryRoundTest, WorkerThatServersShutOutIsNotTakenOver) {
  ASSERT_OK(members_.TakeOver(kWorker0, 7, clock_.Now()));
  Report({.active = true, .committed_step = 7});
  ps0_.report.workers = {{0, 5}};

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
  EXPECT_THAT(ps0_.opening.expired, ElementsAre(Pair(0, 7)));
}

TEST_F(RecoveryRoundTest, ServersAreToldWhoseInputHasEnded) {
  ended_input_ = {0};
  Report({.active = true, .committed_step = 7});
  ps1_.report.workers = {{.worker = 0, .input_ended = true}};

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(found_, 1);
  EXPECT_THAT(ps0_.opening.workers,
              ElementsAre(WorkerStanding{.worker = 0, .input_ended = true}));
}

TEST_F(RecoveryRoundTest, BeginningAnewInheritsNoEndOfTheInput) {
  anew_ = true;
  ps1_.discarded_report.workers = {{.worker = 0, .input_ended = true}};

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(found_, 0);
  EXPECT_THAT(ps0_.opening.workers, ElementsAre(WorkerStanding{0, 0}));
}

TEST_F(RecoveryRoundTest, WorkersJoinAnewWhereAllServersHaveLostTheirState) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  checkpoint_ = 4;

  ASSERT_OK(Run());

  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
  EXPECT_EQ(ps0_.opening.attempt, FirstAttempt(group_.epoch()));
}

// The worker that registers after the first round may be the one that sends the
// values for which the round is repeated.
TEST_F(RecoveryRoundTest, RepeatedRoundExpiresWorkersOnceUntilServersAreOpen) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  restored_ = absl::UnavailableError("the first values have not come");
  const auto not_yet = StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("first values have not come"));
  EXPECT_THAT(Run(), not_yet);
  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
  // It asks until its predecessors are buried, as the chief's loop does.
  for (int i = 0; i < 3; ++i) {
    if (members_.Register(kWorker0, 9, clock_.Now()).ok()) break;
    for (const auto& dead : members_.TakeDead(clock_.Now())) {
      members_.Buried(dead.task, dead.incarnation);
    }
  }
  ASSERT_EQ(members_.Get(kWorker0).state, State::kAlive);

  EXPECT_THAT(Run(), not_yet);
  EXPECT_EQ(members_.Get(kWorker0).state, State::kAlive);
  restored_ = absl::OkStatus();
  EXPECT_OK(Run());

  EXPECT_EQ(members_.Get(kWorker0).state, State::kAlive);
  EXPECT_EQ(ps0_.opening.attempt, FirstAttempt(group_.epoch()));
  ASSERT_OK(Run());
  EXPECT_EQ(members_.Get(kWorker0).state, State::kDead);
}

TEST_F(RecoveryRoundTest,
       FirstRoundOfAChiefExpiresThePredecessorsOfItsMembers) {
  ASSERT_OK(members_.Register(kWorker0, 5, clock_.Now()));
  Report({.active = true, .committed_step = 7});

  ASSERT_OK(Run(/*step=*/std::nullopt));

  EXPECT_EQ(ps0_.opening.attempt, 0);
  EXPECT_EQ(log_.back(), "expire 0 at 7 1");
}

TEST_F(RecoveryRoundTest, ServerThatIsNotWhereItSaidMakesARoundInVain) {
  Report({.committed_step = 7});
  ps0_.activated = absl::FailedPreconditionError("at step 8");

  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace lockstep::chief
