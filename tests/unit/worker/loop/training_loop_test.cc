#include "worker/loop/training_loop.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/loop/scripted_client.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Decision = Announcement::Decision;
using TrainingLoopTest = testing::TrainingLoopFixture;
using testing::kFinished;
using testing::TokenFor;

TEST_F(TrainingLoopTest, StrictPassAnnouncesBeforeItPushes) {
  client_.tokens.answers = {TokenFor(4), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{3, 0, 0, 0}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(
      client_.calls,
      ElementsAre("token after -1 attempt 0", "pull 4", "watch", "announce 4.0",
                  "push 4 attempt 1", "token after 4 attempt 1"));
  EXPECT_THAT(source_.batches, ElementsAre(4));
  EXPECT_EQ(meter_.Get().accepted, 1);
  EXPECT_EQ(meter_.Get().passes, 1);
}

TEST_F(TrainingLoopTest, TokenWhoseBatchCannotBeNumberedIsRefused) {
  const int64_t last = std::numeric_limits<int64_t>::max();
  for (const auto& [step, slot] :
       {std::pair<int64_t, int>{last, 0}, {last - 1, 0}, {-2, 0}, {4, -1}}) {
    client_.tokens.answers = {Token{Token::Kind::kToken, step, slot, 0, 0}};
    EXPECT_THAT(
        Run(kStrict),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("step ", step, ", share ", slot))));
  }
  EXPECT_TRUE(source_.batches.empty());
}

TEST_F(TrainingLoopTest, WorkerThatIsInTheSetAlreadyAnnouncesNothing) {
  client_.tokens.answers = {Token{Token::Kind::kToken, 4, 0, 0, 2}, kFinished};
  client_.pushes.answers = {PushCounts{3, 0, 0, 0}};

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4",
                          "push 4 attempt 2", "token after 4 attempt 2"));
  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(TrainingLoopTest, GradientThatIsNotNeededIsNotSent) {
  client_.tokens.answers = {TokenFor(0), TokenFor(1), kFinished};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0},
                                   Announcement{Decision::kTooLate, 0}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 0", "watch",
                          "announce 0.0", "token after 0 attempt 0", "pull 1",
                          "watch", "announce 1.0", "token after 1 attempt 0"));
  EXPECT_EQ(meter_.Get().stale, 2);
  EXPECT_EQ(meter_.Get().accepted, 0);
}

TEST_F(TrainingLoopTest, RedoPushesTheSameGradientAgainWithoutComputing) {
  client_.tokens.answers = {TokenFor(2), Token{Token::Kind::kRedo, 0, 0, 2},
                            kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{1, 0, 0, 2}, PushCounts{3, 0, 0, 0}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(2));
  EXPECT_THAT(
      client_.calls,
      ElementsAre("token after -1 attempt 0", "pull 2", "watch", "announce 2.0",
                  "push 2 attempt 1", "token after 2 attempt 1",
                  "push 2 attempt 2", "token after 2 attempt 2"));
  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(TrainingLoopTest, BackupThatIsPromotedPushesAfterAll) {
  client_.tokens.answers = {TokenFor(2), Token{Token::Kind::kRedo, 0, 0, 2},
                            kFinished};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0}};
  client_.pushes.answers = {PushCounts{3, 0, 0, 0}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_EQ(client_.calls[4], "token after 2 attempt 0");
  EXPECT_EQ(client_.calls[5], "push 2 attempt 2");
  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(TrainingLoopTest, PassThatWasReplacedAfterItsPushIsStale) {
  client_.tokens.answers = {
      TokenFor(2), Token{.kind = Token::Kind::kFinished, .not_needed = true}};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{3, 0, 0, 0}};

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_EQ(meter_.Get().accepted, 0);
  EXPECT_EQ(meter_.Get().stale, 1);
}

TEST_F(TrainingLoopTest, StepThatIsOverWhenPulledIsNotComputed) {
  client_.tokens.answers = {TokenFor(2), kFinished};
  client_.pulled = 3;

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre());
  EXPECT_THAT(client_.calls, ElementsAre("token after -1 attempt 0", "pull 2",
                                         "token after 2 attempt 0"));
}

TEST_F(TrainingLoopTest, GradientsAreReadyWhileTheRestIsComputed) {
  client_.tokens.answers = {Token{Token::Kind::kToken, 4, 0, 0, 2}, kFinished};
  client_.pushes.answers = {PushCounts{2, 0, 0, 0}};
  source_.layers = 2;
  source_.before_layer = [&](int layer) {
    client_.calls.push_back("layer " + std::to_string(layer));
  };

  EXPECT_THAT(Run(kNoBackups), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4", "layer 1",
                          "ready 1", "layer 0", "ready 0", "push 4 attempt 2",
                          "token after 4 attempt 2"));
}

TEST_F(TrainingLoopTest, BackupAnnouncesWithItsFirstGradient) {
  client_.tokens.answers = {TokenFor(4), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{2, 0, 0, 0}};
  source_.layers = 2;

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("token after -1 attempt 0", "pull 4", "watch",
                          "announce 4.0", "ready 1", "ready 0",
                          "push 4 attempt 1", "token after 4 attempt 1"));
}

TEST_F(TrainingLoopTest, PassOfAStepThatIsOverIsDroppedAtTheNextLayer) {
  client_.tokens.answers = {TokenFor(4), TokenFor(7), kFinished};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0},
                                   Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{2, 0, 0, 0}};
  source_.layers = 3;
  source_.before_layer = [&](int layer) {
    if (source_.batches.back() == 4 && layer == 1) client_.over = true;
  };

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(4, 7));
  EXPECT_THAT(
      client_.calls,
      ElementsAre("token after -1 attempt 0", "pull 4", "watch", "announce 4.0",
                  "ready 2", "token after 4 attempt 0", "pull 7", "watch",
                  "announce 7.0", "ready 2", "ready 1", "ready 0",
                  "push 7 attempt 1", "token after 7 attempt 1"));
  EXPECT_EQ(meter_.Get().stale, 1);
  EXPECT_EQ(meter_.Get().accepted, 1);
  EXPECT_EQ(meter_.Get().passes, 2);
}

TEST_F(TrainingLoopTest, PassesAreDroppedInARowWithoutAnAnnouncement) {
  client_.tokens.answers = {TokenFor(1), TokenFor(2), TokenFor(3), kFinished};
  source_.layers = 3;
  source_.before_layer = [&](int) { client_.over = true; };

  EXPECT_THAT(Run(kStrict), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(1, 2, 3));
  EXPECT_EQ(meter_.Get().stale, 3);
  EXPECT_EQ(meter_.Get().passes, 3);
}

TEST_F(TrainingLoopTest, FailedAnnouncementEndsTheLoopWithItsError) {
  client_.tokens.answers = {TokenFor(1)};
  client_.announcements.answers = {absl::FailedPreconditionError("replaced")};
  source_.layers = 3;

  EXPECT_THAT(Run(kStrict),
              StatusIs(absl::StatusCode::kFailedPrecondition, "replaced"));
}

TEST_F(TrainingLoopTest, PassThatFailsHalfWayEndsTheLoopAndIsNotFinished) {
  source_.layers = 1;
  for (const absl::Status& failure :
       {absl::InternalError("device"), absl::AbortedError("device")}) {
    source_.failure = failure;
    client_.tokens.answers = {Token{Token::Kind::kToken, 4, 0, 0, 2}};
    client_.calls.clear();

    EXPECT_THAT(Run(kNoBackups), StatusIs(failure.code(), "device"));

    EXPECT_THAT(client_.calls,
                ElementsAre("token after -1 attempt 0", "pull 4", "ready 0"));
  }
}

TEST_F(TrainingLoopTest, SharesOfAStepUseDifferentBatches) {
  client_.tokens.answers = {TokenFor(3, 0), TokenFor(3, 1), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1},
                                   Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{1}, PushCounts{1}};

  EXPECT_THAT(Run({SyncMode::kStrict, 4, 2, 1, 0}), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(6, 7));
}

TEST_F(TrainingLoopTest, NumbersOfASharedStepAreBatchesOfNoWorker) {
  client_.tokens.answers = {TokenFor(3, 5), TokenFor(3, 0), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1},
                                   Announcement{Decision::kNotNeeded, 0}};
  client_.pushes.answers = {PushCounts{1}};
  TrainingLoop::Options options = {SyncMode::kStrict, 8, 2, 1, 0};
  options.numbers = 8;

  EXPECT_THAT(Run(options), IsOk());

  EXPECT_THAT(source_.batches, ElementsAre(29, 24));
  // It learns when another worker has finished the number.
  EXPECT_THAT(
      client_.calls,
      ElementsAre("token after -1 attempt 0", "pull 3", "watch", "announce 3.5",
                  "push 3 attempt 1", "token after 3 attempt 1", "pull 3",
                  "watch", "announce 3.0", "token after 3 attempt 0"));
}

TEST_F(TrainingLoopTest, NumberThatAnotherWorkerHasPushedIsNotAccepted) {
  client_.tokens.answers = {TokenFor(3, 5), TokenFor(3, 6), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1},
                                   Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{.duplicate = 1},
                            PushCounts{.accepted = 1}};
  TrainingLoop::Options options = {SyncMode::kStrict, 8, 2, 1, 0};
  options.numbers = 8;

  EXPECT_THAT(Run(options), IsOk());

  EXPECT_EQ(meter_.Get().accepted, 1);
  EXPECT_EQ(meter_.Get().stale, 1);
}

TEST_F(TrainingLoopTest, NumberThatASharedStepDoesNotHaveIsRefused) {
  TrainingLoop::Options options = {SyncMode::kStrict, 8, 2, 1, 0};
  options.numbers = 8;
  client_.tokens.answers = {TokenFor(3, 8)};

  EXPECT_THAT(Run(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("the share in [0, 7]")));
}

TEST_F(TrainingLoopTest, PassFromTheStepThatEndsTrainingDoesNotCount) {
  TrainingLoop::Options options = kStrict;
  options.train_steps = 4;
  client_.tokens.answers = {TokenFor(3), TokenFor(4), kFinished};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1},
                                   Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {PushCounts{1}, PushCounts{1}};

  EXPECT_THAT(Run(options), IsOk());

  EXPECT_THAT(source_.batches, SizeIs(2));
  EXPECT_EQ(meter_.Get().passes, 1);
  EXPECT_EQ(meter_.Get().accepted, 1);
}

TEST_F(TrainingLoopTest, CompatiblePassesAllCount) {
  TrainingLoop::Options options = kCompatible;
  options.train_steps = 8;
  client_.tokens.answers = {TokenFor(8), kFinished};
  client_.pushes.answers = {PushCounts{2}, PushCounts{2}};

  EXPECT_THAT(Run(options), IsOk());

  EXPECT_EQ(meter_.Get().passes, 2);
  EXPECT_EQ(meter_.Get().accepted, 2);
}

TEST_F(TrainingLoopTest, CompatiblePassIsFreeAndTakesItsTokenAfterwards) {
  client_.tokens.answers = {TokenFor(7), TokenFor(8), kFinished};
  client_.pushes.answers = {PushCounts{2, 0, 0, 0}, PushCounts{0, 2, 0, 0},
                            PushCounts{1, 0, 1, 0}};

  EXPECT_THAT(Run(kCompatible), IsOk());

  EXPECT_THAT(
      client_.calls,
      ElementsAre("pull -1", "push 7 attempt 0", "token after 7 attempt 0",
                  "pull -1", "push 7 attempt 0", "token after 7 attempt 0",
                  "pull -1", "push 8 attempt 0", "token after 8 attempt 0"));
  EXPECT_THAT(source_.batches, ElementsAre(7, 8, 9));
  EXPECT_EQ(meter_.Get().accepted, 2);
  EXPECT_EQ(meter_.Get().stale, 1);
  EXPECT_EQ(meter_.Get().duplicate, 1);
}

// Others would be those of a later step than the rest of the pass.
TEST_F(TrainingLoopTest, CompatiblePassPullsNothingButRowsInItsMiddle) {
  client_.tokens.answers = {kFinished};
  client_.pushes.answers = {PushCounts{2, 0, 0, 0}};
  source_.pulls_rows = true;

  EXPECT_THAT(Run(kCompatible), IsOk());

  EXPECT_THAT(client_.calls,
              ElementsAre("pull -1", "pull rows -1", "push 7 attempt 0",
                          "token after 7 attempt 0"));
}

class LastValuesTest : public testing::TrainingLoopFixture {
 protected:
  // Returns -1 for values that are not known.
  int64_t LastStep(TrainingLoop::Options options, bool whole = true) {
    options.pulls_last_values = true;
    TrainingLoop loop(options, client_, source_, meter_);
    ended_ = loop.Run();
    if (!loop.last_values().has_value()) return -1;
    EXPECT_EQ(loop.last_values()->whole, whole);
    return loop.last_values()->step;
  }

  absl::Status ended_;
};

TEST_F(LastValuesTest, AreThoseOfTheStepThatTrainingHasReached) {
  client_.tokens.answers = {TokenFor(3),
                            Token{.kind = Token::Kind::kFinished, .step = 4}};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0}};

  EXPECT_EQ(LastStep(kStrict), 4);

  EXPECT_THAT(ended_, IsOk());
  EXPECT_EQ(client_.calls.back(), "pull 4");
}

// A ps task 0 of an older release does not tell the step.
TEST_F(LastValuesTest, ArePulledUntilNoServerHasALaterStep) {
  client_.tokens.answers = {TokenFor(3), kFinished};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0}};
  client_.later = {3, 4, 4};

  EXPECT_EQ(LastStep(kStrict), 4);

  EXPECT_THAT(
      client_.calls,
      ElementsAre("token after -1 attempt 0", "pull 3", "watch", "announce 3.0",
                  "token after 3 attempt 0", "pull 3", "pull 4"));
}

TEST_F(LastValuesTest, ArePulledByAWorkerThatJoinsForTheEnd) {
  client_.tokens.answers = {Token{.kind = Token::Kind::kFinished, .step = 9}};
  EXPECT_EQ(LastStep(kStrict), 9);
}

// The end of the job cancels the pass, which the program has perhaps not taken.
TEST_F(LastValuesTest, ArePulledForAPassThatCountsInNoStep) {
  TrainingLoop::Options options = kStrict;
  options.train_steps = 4;
  client_.tokens.answers = {TokenFor(3), TokenFor(4)};
  client_.announcements.answers = {Announcement{Decision::kNotNeeded, 0}};
  source_.before_layer = [&](int) {
    if (source_.batches.back() == 4) source_.failure = absl::CancelledError();
  };
  source_.layers = 1;

  EXPECT_EQ(LastStep(options, /*whole=*/false), 4);

  EXPECT_THAT(ended_, StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LastValuesTest, AreUnknownWhereTheJobEndsBeforeItsFirstStep) {
  client_.tokens.answers = {kFinished};
  EXPECT_EQ(LastStep(kStrict), -1);
  EXPECT_THAT(client_.calls, ElementsAre("token after -1 attempt 0"));
}

TEST_F(LastValuesTest, ArePulledAtTheEndOfInput) {
  client_.tokens.answers = {TokenFor(5)};
  source_.end = 5;

  EXPECT_EQ(LastStep(kStrict), 5);

  EXPECT_THAT(ended_, StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(LastValuesTest, AreNotPulledAfterAFailure) {
  client_.tokens.answers = {TokenFor(5)};
  source_.failure = absl::InternalError("no device");

  EXPECT_EQ(LastStep(kStrict), -1);

  EXPECT_THAT(ended_, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(client_.calls.back(), "watch");
}

TEST_F(LastValuesTest, OfCompatibleModeAreTheNewest) {
  client_.tokens.answers = {TokenFor(8), kFinished};
  client_.pushes.answers = {PushCounts{2}, PushCounts{2}};
  client_.later = {7, 8, 9};

  EXPECT_EQ(LastStep(kCompatible), 9);

  EXPECT_EQ(client_.calls.back(), "pull -1");
}

TEST_F(TrainingLoopTest, EndOfInputEndsTheLoop) {
  client_.tokens.answers = {TokenFor(5)};
  source_.end = 5;

  EXPECT_THAT(Run(kStrict), StatusIs(absl::StatusCode::kOutOfRange));

  EXPECT_EQ(meter_.Get().passes, 0);
}

TEST_F(TrainingLoopTest, FailedPushEndsTheLoopWithItsError) {
  client_.tokens.answers = {TokenFor(0)};
  client_.announcements.answers = {Announcement{Decision::kSelected, 1}};
  client_.pushes.answers = {absl::InvalidArgumentError("NaN")};

  EXPECT_THAT(Run(kStrict),
              StatusIs(absl::StatusCode::kInvalidArgument, "NaN"));
}

}  // namespace
}  // namespace lockstep::worker
