#include "worker/loop/strict_pass.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using Decision = Announcement::Decision;

constexpr PassId kPass{4, 5, 0};

// Writes down what it is asked to begin.
class RecordingClient final : public StepClient {
 public:
  void BeginPass(const PassId& pass, PassKind kind, bool watch) override {
    calls.push_back((watch ? "watch " : "begin ") + std::to_string(pass.step) +
                    "." + std::to_string(pass.number));
    kinds.push_back(kind);
  }
  bool StepIsOver() const override { return over; }
  void GradientReady(size_t variable) override {
    calls.push_back("ready " + std::to_string(variable));
  }
  void GradientAbsent(size_t variable) override {
    calls.push_back("absent " + std::to_string(variable));
  }
  void BeginPush(const PassId& pass, int64_t attempt) override {
    calls.push_back("push " + std::to_string(pass.step) + "." +
                    std::to_string(pass.number) + " for " +
                    std::to_string(attempt));
  }
  absl::StatusOr<Announcement> Announce(const PassId& pass) override {
    calls.push_back("announce " + std::to_string(pass.step) + "." +
                    std::to_string(pass.number));
    return announcement;
  }
  absl::StatusOr<int64_t> Pull(int64_t) override { return pulled; }
  absl::StatusOr<int64_t> PullAgain(int64_t, PulledAgain what) override {
    pulled_again.push_back(what);
    return pulled;
  }
  absl::StatusOr<PushCounts> Push(const PassId&, int64_t) override {
    return PushCounts();
  }
  absl::StatusOr<Token> TakeToken(const PassId&, int64_t) override {
    return Token();
  }

  absl::StatusOr<Announcement> announcement = Announcement{};
  absl::StatusOr<int64_t> pulled = 4;
  bool over = false;
  std::vector<std::string> calls;
  std::vector<PassKind> kinds;
  std::vector<PulledAgain> pulled_again;
};

class StrictPassTest : public ::testing::Test {
 protected:
  RecordingClient client_;
};

TEST_F(StrictPassTest, RowsOfAStepThatIsOverDropThePass) {
  StrictPass pass(client_, kPass, {.selected_attempt = 1});
  EXPECT_OK(pass.PullRows());
  EXPECT_FALSE(pass.dropped());

  client_.pulled = 5;
  EXPECT_THAT(pass.PullRows(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(pass.dropped());
}

TEST_F(StrictPassTest, OnlyTheNextBatchPullsTakenValuesWithItsRows) {
  StrictPass pass(client_, kPass, {.selected_attempt = 1});

  EXPECT_OK(pass.PullRows());
  EXPECT_OK(pass.PullNextBatch());

  EXPECT_THAT(client_.pulled_again,
              ElementsAre(StepClient::PulledAgain::kRows,
                          StepClient::PulledAgain::kRowsAndTaken));
}

TEST_F(StrictPassTest, PassOfSharedWorkIsBegunAsOne) {
  client_.announcement = Announcement{Decision::kSelected, 2};
  StrictPass pass(client_, kPass, {.watch = true, .shared = true});
  pass.GradientReady(0);

  EXPECT_THAT(client_.kinds, ElementsAre(StepClient::PassKind::kShared));
  EXPECT_THAT(client_.calls, ElementsAre("watch 4.5", "announce 4.5",
                                         "push 4.5 for 2", "ready 0"));
}

TEST_F(StrictPassTest, OnlyTokensOfTheFirstAttemptSelectAllMembers) {
  const StrictPass first(client_, kPass, {.selected_attempt = 1});
  const StrictPass redone(client_, kPass, {.selected_attempt = 3});
  const StrictPass some(client_, kPass, {});

  EXPECT_TRUE(first.all_workers_count());
  EXPECT_TRUE(redone.all_workers_count());
  EXPECT_FALSE(some.all_workers_count());
  EXPECT_THAT(client_.kinds, ElementsAre(StepClient::PassKind::kAllCount,
                                         StepClient::PassKind::kSomeCount,
                                         StepClient::PassKind::kSomeCount));
}

TEST_F(StrictPassTest, MemberSendsFromTheFirstGradientOn) {
  StrictPass pass(client_, kPass, {.selected_attempt = 3});

  pass.GradientReady(1);
  pass.GradientReady(0);

  EXPECT_THAT(pass.Finish(), IsOk());
  EXPECT_EQ(pass.attempt(), 3);
  EXPECT_THAT(client_.calls,
              ElementsAre("begin 4.5", "push 4.5 for 3", "ready 1", "ready 0"));
}

TEST_F(StrictPassTest, WorkerThatIsNotSelectedAnnouncesWithTheFirstGradient) {
  client_.announcement = Announcement{Decision::kSelected, 2};
  StrictPass pass(client_, kPass, {.watch = true});

  pass.GradientReady(1);
  pass.GradientReady(0);

  EXPECT_THAT(pass.Finish(), IsOk());
  EXPECT_EQ(pass.attempt(), 2);
  EXPECT_THAT(client_.calls,
              ElementsAre("watch 4.5", "announce 4.5", "push 4.5 for 2",
                          "ready 1", "ready 0"));
}

TEST_F(StrictPassTest, PassThatIsNotNeededSendsNothingAndGoesOn) {
  client_.announcement = Announcement{Decision::kNotNeeded, 0};
  StrictPass pass(client_, kPass, {.watch = true});

  pass.GradientReady(0);

  EXPECT_THAT(pass.CheckWanted(), IsOk());  // it may be promoted
  EXPECT_THAT(pass.Finish(), IsOk());
  EXPECT_EQ(pass.attempt(), 0);
  EXPECT_THAT(client_.calls,
              ElementsAre("watch 4.5", "announce 4.5", "ready 0"));
}

TEST_F(StrictPassTest, PassThatReportedNothingIsAnnouncedAtItsEnd) {
  client_.announcement = Announcement{Decision::kSelected, 1};
  StrictPass pass(client_, kPass, {});

  EXPECT_THAT(pass.Finish(), IsOk());

  EXPECT_EQ(pass.attempt(), 1);
  EXPECT_THAT(client_.calls,
              ElementsAre("begin 4.5", "announce 4.5", "push 4.5 for 1"));
}

TEST_F(StrictPassTest, BackupDropsThePassOfAStepThatIsOver) {
  StrictPass pass(client_, kPass, {.watch = true});
  EXPECT_THAT(pass.CheckWanted(), IsOk());
  EXPECT_FALSE(pass.dropped());

  client_.over = true;

  EXPECT_THAT(pass.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(pass.dropped());
  EXPECT_THAT(client_.calls, ElementsAre("watch 4.5"));
}

TEST_F(StrictPassTest, BackupThatIsNotNeededDropsThePassToo) {
  client_.announcement = Announcement{Decision::kNotNeeded, 0};
  StrictPass pass(client_, kPass, {.watch = true});
  pass.GradientReady(1);

  client_.over = true;

  EXPECT_THAT(pass.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(pass.dropped());
}

TEST_F(StrictPassTest, MemberNeverDropsItsPass) {
  client_.announcement = Announcement{Decision::kSelected, 1};
  StrictPass pass(client_, kPass, {.watch = true});
  pass.GradientReady(1);

  client_.over = true;

  EXPECT_THAT(pass.CheckWanted(), IsOk());
  EXPECT_FALSE(pass.dropped());
}

TEST_F(StrictPassTest, FailedAnnouncementEndsThePassWithItsError) {
  client_.announcement = absl::FailedPreconditionError("replaced");
  StrictPass pass(client_, kPass, {});

  pass.GradientReady(1);
  pass.GradientReady(0);

  EXPECT_THAT(pass.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(pass.dropped());
  EXPECT_THAT(pass.status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "replaced"));
  EXPECT_THAT(pass.Finish(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "replaced"));
  EXPECT_EQ(pass.attempt(), 0);
  EXPECT_THAT(client_.calls,
              ElementsAre("begin 4.5", "announce 4.5", "ready 1", "ready 0"));
}

TEST_F(StrictPassTest, AbsentGradientIsToldBeforeItMayBeSent) {
  GradientClipper clipper({ClippingConfig::Kind::kNorm, 1}, DType::kFloat32,
                          [] { return GradientClipper::Gradients(2); });
  GradientClipper* const none = nullptr;
  for (GradientClipper* const any : {&clipper, none}) {
    client_.calls.clear();
    StrictPass pass(client_, kPass, {.selected_attempt = 3, .clipper = any});

    pass.GradientReady(1);
    pass.GradientAbsent(0);

    EXPECT_THAT(client_.calls, ElementsAre("begin 4.5", "push 4.5 for 3",
                                           "ready 1", "absent 0", "ready 0"));
  }
}

// A worker without absent variables sends the last one first; all must send in
// one order.
TEST_F(StrictPassTest, AbsentGradientDoesNotOvertakeOnesThatAreKeptBack) {
  GradientClipper clipper({ClippingConfig::Kind::kGlobalNorm, 1},
                          DType::kFloat32,
                          [] { return GradientClipper::Gradients(2); });
  StrictPass pass(client_, kPass, {.selected_attempt = 3, .clipper = &clipper});

  pass.GradientReady(1);
  pass.GradientAbsent(0);
  EXPECT_THAT(client_.calls, ElementsAre("begin 4.5"));

  EXPECT_THAT(pass.Finish(), IsOk());
  EXPECT_THAT(client_.calls, ElementsAre("begin 4.5", "push 4.5 for 3",
                                         "ready 1", "absent 0", "ready 0"));
}

}  // namespace
}  // namespace lockstep::worker
