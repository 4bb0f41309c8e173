#include "worker/session/handover.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(1);

// A pass that remembers what is ready, and is wanted until it is told.
class RecordedPass final : public GradientPass {
 public:
  absl::Status CheckWanted() override {
    return wanted ? absl::OkStatus() : absl::AbortedError("over");
  }
  absl::Status PullRows() override { return pulled; }
  absl::Status NeedValues(size_t first, size_t count) override {
    needed = first + count;
    return arrived;
  }
  void GradientReady(size_t variable) override { ready.push_back(variable); }
  void GradientAbsent(size_t variable) override { absent.push_back(variable); }

  bool wanted = true;
  absl::Status pulled;
  absl::Status arrived;  // values
  size_t needed = 0;
  std::vector<size_t> ready;
  std::vector<size_t> absent;
};

class HandoverTest : public ::testing::Test {
 protected:
  ~HandoverTest() override {
    handover_.Cancel();
    if (loop_.joinable()) loop_.join();
  }
  void OfferPass(int64_t step) {
    if (loop_.joinable()) loop_.join();
    loop_ = std::thread([this, step] {
      result_ = handover_.OfferPass({{.step = step}, step}, pass_);
    });
  }
  // Both halves of an early pass, if `follows`; or its first half and then the
  // pass of the next step.
  void OfferEarly(int64_t step, bool follows = true) {
    loop_ = std::thread([this, step, follows] {
      early_ = handover_.OfferEarly(
          {.pass = {.step = step}, .batch = step, .early = true}, pass_);
      if (early_.ok() && follows) {
        result_ = handover_.Resume(second_);
      } else {
        result_ = handover_.OfferPass({{.step = step + 1}, step + 1}, second_);
      }
    });
  }
  Handover::Stage Take(absl::Duration timeout = kLong) {
    return handover_.Take(timeout, offer_);
  }
  absl::StatusOr<GradientResult> Result() {
    loop_.join();
    return result_;
  }

  Handover handover_;
  RecordedPass pass_;
  RecordedPass second_;  // after an early one
  Handover::Offer offer_;
  absl::Status early_;
  absl::StatusOr<GradientResult> result_;
  std::thread loop_;
};

TEST_F(HandoverTest, RowsArePulledInsideThePass) {
  EXPECT_THAT(handover_.PullRows(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  OfferPass(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.PullRows());
  EXPECT_OK(handover_.Done({.loss = 0.5, .examples = 4}));
  EXPECT_OK(Result());
}

TEST_F(HandoverTest, AFailedPullEndsThePassAndTheLoopHasTheReason) {
  pass_.pulled = absl::FailedPreconditionError("no member any more");
  OfferPass(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.PullRows(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(handover_.Done({}), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(HandoverTest, ThePassIsComputedByTheProgramAndItsResultIsTheLoops) {
  OfferPass(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_EQ(offer_.pass.step, 7);
  EXPECT_OK(handover_.Ready(1));
  EXPECT_OK(handover_.Ready(0));
  EXPECT_OK(handover_.Done({.loss = 0.5, .examples = 4}));

  const absl::StatusOr<GradientResult> result = Result();
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, 0.5);
  EXPECT_THAT(pass_.ready, ElementsAre(1, 0));
}

TEST_F(HandoverTest, WithoutAnOfferTheWaitEndsAfterItsTimeout) {
  EXPECT_EQ(Take(absl::Milliseconds(1)), Handover::Stage::kNothing);
  EXPECT_THAT(handover_.Done({}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(HandoverTest, APassThatIsNotWantedEndsAtTheProgramsNextCall) {
  pass_.wanted = false;
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.Ready(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(Result().status(), StatusIs(absl::StatusCode::kAborted));

  // Also when the loop offers the next pass before the program notices.
  pass_.wanted = true;
  OfferPass(2);
  EXPECT_THAT(handover_.Ready(1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.Done({}), StatusIs(absl::StatusCode::kAborted));
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Ready(1));
  EXPECT_THAT(pass_.ready, ElementsAre(1));
  EXPECT_OK(handover_.Done({}));
}

TEST_F(HandoverTest, WithoutInputTheLoopEndsAndTheProgramGoesOn) {
  handover_.EndInput();  // there is no offer
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  handover_.EndInput();
  EXPECT_THAT(Result().status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(handover_.Ready(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.Done({}), StatusIs(absl::StatusCode::kAborted));
}

// The loop throws the answer of an early pass away: see TrainingLoop.
TEST_F(HandoverTest, InputThatHasEndedInAnEarlyPassIsNotAskedForAgain) {
  OfferEarly(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  handover_.EndInput();
  // That of the offer after the early one, which the program does not see.
  EXPECT_THAT(Result().status(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(early_, StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_FALSE(handover_.offers());
  EXPECT_THAT(handover_.NeedValues(0, 1), StatusIs(absl::StatusCode::kAborted));

  // A new membership may be at an earlier step.
  handover_.Reopen();
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, InputMayEndBetweenTheHalvesOfAPass) {
  std::thread loop([&] {
    early_ = handover_.OfferEarly({.pass = {.step = 7}, .early = true}, pass_);
  });
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.BeginGradients(absl::ZeroDuration()),
              IsOkAndHolds(false));
  handover_.EndInput();
  EXPECT_THAT(handover_.BeginGradients(kLong),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  loop.join();
  EXPECT_OK(early_);
  EXPECT_THAT(handover_.Resume(second_).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(HandoverTest, APassBetweenItsHalvesIsOverWhenAnotherMembershipBegins) {
  std::thread loop([&] {
    early_ = handover_.OfferEarly({.pass = {.step = 7}, .early = true}, pass_);
  });
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.BeginGradients(absl::ZeroDuration()),
              IsOkAndHolds(false));
  loop.join();
  handover_.Cancel();
  handover_.Reopen();
  EXPECT_THAT(handover_.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  handover_.EndInput();  // of that pass
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, TheEndIsNoOfferThatCouldLackInput) {
  handover_.End(absl::OkStatus());
  ASSERT_EQ(Take(), Handover::Stage::kEnded);
  handover_.EndInput();
  EXPECT_THAT(handover_.Done({}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(HandoverTest, CancelFreesTheLoopWhileTheProgramComputes) {
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  handover_.Cancel();
  EXPECT_THAT(Result().status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(handover_.Ready(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(pass_.ready, ElementsAre());
  EXPECT_THAT(handover_.OfferPass({}, pass_).status(),
              StatusIs(absl::StatusCode::kCancelled));
}

// The members of an elastic job change twice while the program computes.
TEST_F(HandoverTest, APassThatWasWithdrawnIsOverAfterAnotherOfferToo) {
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  handover_.Cancel();
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kCancelled));
  handover_.Reopen();
  OfferPass(2);
  while (!handover_.offers()) std::this_thread::yield();
  handover_.Cancel();
  EXPECT_THAT(Result(), StatusIs(absl::StatusCode::kCancelled));

  EXPECT_THAT(handover_.Ready(0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.PullRows(), StatusIs(absl::StatusCode::kAborted));
  handover_.Reopen();
  OfferPass(3);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Ready(0));
}

TEST_F(HandoverTest, AnEarlyPassHasTwoHalves) {
  OfferEarly(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_TRUE(offer_.early);
  EXPECT_OK(handover_.NeedValues(0, 2));
  EXPECT_EQ(pass_.needed, 2);
  EXPECT_THAT(handover_.BeginGradients(kLong), IsOkAndHolds(true));
  EXPECT_THAT(handover_.BeginGradients(kLong), IsOkAndHolds(true));
  EXPECT_OK(handover_.Ready(0));
  EXPECT_OK(handover_.Done({.loss = 0.5}));

  EXPECT_THAT(Result(), IsOk());
  EXPECT_OK(early_);
  EXPECT_THAT(pass_.ready, ElementsAre());
  EXPECT_THAT(second_.ready, ElementsAre(0));
}

TEST_F(HandoverTest, APassThatIsNotEarlyBeginsItsGradientsAtOnce) {
  EXPECT_THAT(handover_.BeginGradients(kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  OfferPass(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_FALSE(offer_.early);
  EXPECT_THAT(handover_.BeginGradients(kLong), IsOkAndHolds(true));
  EXPECT_OK(handover_.Done({}));
}

TEST_F(HandoverTest, AnotherOfferDropsAnEarlyPass) {
  OfferEarly(7, /*follows=*/false);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.BeginGradients(kLong),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.Ready(0), StatusIs(absl::StatusCode::kAborted));
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_EQ(offer_.pass.step, 8);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, AnEarlyPassWhoseValuesDoNotArriveIsDropped) {
  pass_.arrived = absl::AbortedError("the push brings none");
  OfferEarly(7);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.NeedValues(0, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(handover_.BeginGradients(kLong),
              StatusIs(absl::StatusCode::kAborted));
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_EQ(offer_.pass.step, 8);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
  EXPECT_THAT(early_, StatusIs(absl::StatusCode::kAborted));
}

TEST_F(HandoverTest, AProgramMayAskAgainWhetherGradientsBegin) {
  std::thread loop([&] {
    early_ = handover_.OfferEarly({.pass = {.step = 7}, .early = true}, pass_);
  });
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_THAT(handover_.BeginGradients(absl::ZeroDuration()),
              IsOkAndHolds(false));
  loop.join();
  EXPECT_OK(early_);
  EXPECT_THAT(handover_.BeginGradients(absl::ZeroDuration()),
              IsOkAndHolds(false));
  EXPECT_OK(handover_.CheckWanted());
  EXPECT_THAT(handover_.Ready(0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("BeginGradients")));
  loop_ = std::thread([&] { result_ = handover_.Resume(second_); });
  EXPECT_THAT(handover_.BeginGradients(kLong), IsOkAndHolds(true));
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, TheEndOfAMembershipEndsAnEarlyPass) {
  for (const bool ends : {false, true}) {
    handover_.Reopen();
    std::thread loop([&] {
      early_ =
          handover_.OfferEarly({.pass = {.step = 7}, .early = true}, pass_);
    });
    ASSERT_EQ(Take(), Handover::Stage::kPass);
    EXPECT_THAT(handover_.BeginGradients(absl::ZeroDuration()),
                IsOkAndHolds(false));
    loop.join();
    if (ends) {
      handover_.End(absl::OkStatus());
    } else {
      handover_.Cancel();
      EXPECT_THAT(handover_.Resume(second_).status(),
                  StatusIs(absl::StatusCode::kCancelled));
    }
    EXPECT_THAT(handover_.BeginGradients(kLong),
                StatusIs(absl::StatusCode::kAborted));
    EXPECT_THAT(handover_.CheckWanted(), StatusIs(absl::StatusCode::kAborted));
  }
}

TEST_F(HandoverTest, AMembershipThatBeginsAnewMakesOffersAgain) {
  handover_.Cancel();
  handover_.Reopen();
  OfferPass(3);
  EXPECT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, AGradientAfterTheEndOfItsPassIsRefused) {
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Done({}));
  EXPECT_THAT(handover_.Ready(0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Result(), IsOk());
}

TEST_F(HandoverTest, RowsAreChosenBeforeThePassIsOffered) {
  absl::Status chosen;
  std::thread loop([&] {
    chosen = handover_.OfferRows({{.step = 4}, 4});
    result_ = handover_.OfferPass({{.step = 4}, 4}, pass_);
  });
  EXPECT_EQ(Take(), Handover::Stage::kRows);
  EXPECT_THAT(handover_.Ready(0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(handover_.Chosen());
  EXPECT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Done({}));
  loop.join();
  EXPECT_OK(chosen);
}

TEST_F(HandoverTest, TheEndIsFoundByEveryLaterWait) {
  EXPECT_FALSE(handover_.ended());
  handover_.End(absl::AbortedError("the job failed"));
  EXPECT_TRUE(handover_.ended());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Take(), Handover::Stage::kEnded);
  }
  EXPECT_THAT(handover_.end(), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(HandoverTest, AbsentGradientIsToldToThePass) {
  OfferPass(1);
  ASSERT_EQ(Take(), Handover::Stage::kPass);
  EXPECT_OK(handover_.Ready(1));
  EXPECT_OK(handover_.Absent(0));
  EXPECT_OK(handover_.Done({}));

  EXPECT_THAT(Result(), IsOk());
  EXPECT_THAT(pass_.ready, ElementsAre(1));
  EXPECT_THAT(pass_.absent, ElementsAre(0));
  EXPECT_THAT(handover_.Absent(0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::worker
