#include "server/step/strict/pending_pushes.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PendingPushesTest : public ::testing::Test {
 protected:
  static std::shared_ptr<PendingPush> Of(uint64_t ticket, int parts) {
    auto pending = std::make_shared<PendingPush>();
    pending->ticket = ticket;
    pending->outcomes.resize(parts, PushOutcome::kDuplicate);
    return pending;
  }

  FakePartUpdater updater_{2};
  PendingPushes pushes_{updater_};
  Contribution first_;
  Contribution second_;
  ShardAnswers answers_;
};

TEST_F(PendingPushesTest, PushIsAnsweredWithItsLastPart) {
  const auto push = Of(7, 2);
  push->return_values = true;
  pushes_.Await(first_, push, 0, 4, answers_);
  pushes_.Await(second_, push, 1, 4, answers_);

  pushes_.Decide(second_, PushOutcome::kAccepted, {}, 4, answers_);
  EXPECT_THAT(answers_.pushes, IsEmpty());
  pushes_.Decide(first_, PushOutcome::kAccepted, {}, 4, answers_);

  ASSERT_THAT(answers_.pushes, SizeIs(1));
  EXPECT_EQ(answers_.pushes[0].ticket, 7U);
  EXPECT_EQ(answers_.pushes[0].server_step, 4);
  EXPECT_THAT(answers_.pushes[0].values, SizeIs(2));
}

TEST_F(PendingPushesTest, PushThatDidNotCountBringsNoValues) {
  const auto push = Of(7, 1);
  push->return_values = true;
  pushes_.Await(first_, push, 0, 4, answers_);

  pushes_.Decide(first_, PushOutcome::kSuperseded, {}, 4, answers_);

  ASSERT_THAT(answers_.pushes, SizeIs(1));
  EXPECT_THAT(answers_.pushes[0].values, IsEmpty());
}

TEST_F(PendingPushesTest, RepeatedPushIsADuplicateAndAThirdEndsTheFirst) {
  for (const uint64_t ticket : {1, 2, 3}) {
    pushes_.Await(first_, Of(ticket, 1), 0, 4, answers_);
  }
  ASSERT_THAT(answers_.pushes, SizeIs(1));
  EXPECT_EQ(answers_.pushes[0].ticket, 1U);
  EXPECT_TRUE(absl::IsAborted(answers_.pushes[0].status));

  pushes_.Decide(first_, PushOutcome::kAccepted, {}, 4, answers_);

  ASSERT_THAT(answers_.pushes, SizeIs(3));
  EXPECT_THAT(answers_.pushes[1].outcomes, ElementsAre(PushOutcome::kAccepted));
  EXPECT_THAT(answers_.pushes[2].outcomes,
              ElementsAre(PushOutcome::kDuplicate));
}

TEST_F(PendingPushesTest, RefusalOfAGradientThatIsGoneChangesNothing) {
  std::map<Contributor, Contribution> collected;
  pushes_.Await(collected[{0, 0}], Of(1, 1), 0, 4, answers_);
  const absl::Status why = absl::InvalidArgumentError("why");

  pushes_.Refuse(collected, {{{1, 0}, why}}, 4, answers_);

  EXPECT_THAT(collected, SizeIs(1));
  EXPECT_THAT(answers_.pushes, IsEmpty());

  pushes_.Refuse(collected, {{{0, 0}, why}}, 4, answers_);

  EXPECT_THAT(collected, IsEmpty());
  ASSERT_THAT(answers_.pushes, SizeIs(1));
  EXPECT_EQ(answers_.pushes[0].status, why);
}

}  // namespace
}  // namespace lockstep::server
