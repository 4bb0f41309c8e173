#include "common/collective/group_view.h"

#include <array>
#include <memory>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kAborted = absl::StatusCode::kAborted;

Greeting Of(int rank, uint64_t incarnation) {
  return {rank, incarnation, 2, "one replica"};
}

TEST(GroupViewTest, IsFormedWhenAllHaveAnswered) {
  GroupView view({1, 11, 3, "p"});
  EXPECT_THAT(view.Awaited(), ElementsAre(0, 2));
  view.Answered(0, {10, true});
  EXPECT_TRUE(view.awaits(2));
  view.Answered(2, {12, true});
  EXPECT_TRUE(view.formed());
  EXPECT_EQ(view.incarnation(2), 12U);
}

TEST(GroupViewTest, AMemberOfAnOlderGroupDoesNotCount) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, false});
  EXPECT_FALSE(view.formed());
}

TEST(GroupViewTest, AnotherStartIsAnsweredWhileTheGroupIsNotFormed) {
  GroupView view({0, 10, 3, "p"});
  view.Answered(1, {11, true});
  const auto answer = view.Hear({1, 21, 3, "p"});
  ASSERT_THAT(answer, IsOk());
  EXPECT_TRUE(answer->joins);
  EXPECT_TRUE(view.awaits(1)) << "the start that had answered is no more";
}

TEST(GroupViewTest, AnotherStartEndsAGroupThatIsFormed) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, true});
  EXPECT_TRUE(view.Hear(Of(1, 11))->joins) << "the same start, late";
  EXPECT_THAT(view.gone(1), IsOk());
  EXPECT_FALSE(view.Hear(Of(1, 21))->joins);
  EXPECT_THAT(view.gone(1), StatusIs(kAborted, HasSubstr("rank 1")));
  view.Answered(1, {21, true});
  EXPECT_EQ(view.incarnation(1), 11U);
}

// The greeting was on its way when its process died.
TEST(GroupViewTest, AGreetingOfAnOlderStartReplacesNoNewerOne) {
  GroupView view({0, 10, 3, "p"});
  EXPECT_TRUE(view.Hear({1, 22, 3, "p"})->joins);
  view.Answered(1, {22, true});
  EXPECT_FALSE(view.Hear({1, 21, 3, "p"})->joins);
  EXPECT_EQ(view.incarnation(1), 22U);
  EXPECT_TRUE(view.awaits(1)) << "the member is asked which start there is";
  view.Answered(1, {22, true});
  view.Answered(2, {5, true});
  ASSERT_TRUE(view.formed());

  EXPECT_FALSE(view.Hear({1, 21, 3, "p"})->joins);
  EXPECT_THAT(view.gone(1), IsOk());
}

TEST(GroupViewTest, AnAnswerOfAnOlderStartCountsIfItIsRepeated) {
  GroupView view({0, 10, 3, "p"});
  EXPECT_TRUE(view.Hear({1, 22, 3, "p"})->joins);
  view.Answered(1, {21, true});
  EXPECT_TRUE(view.awaits(1));
  EXPECT_EQ(view.incarnation(1), 22U);
  // The clock of the member's host was set back between its starts.
  view.Answered(1, {21, true});
  EXPECT_FALSE(view.awaits(1));
  EXPECT_EQ(view.incarnation(1), 21U);
}

TEST(GroupViewTest, AMemberThatLeavesIsGone) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, true});
  view.HearLeave(1, 9);
  EXPECT_THAT(view.gone(1), IsOk()) << "an earlier start has left";
  view.HearLeave(1, 11);
  EXPECT_THAT(view.gone(1), StatusIs(kAborted, HasSubstr("left")));
}

TEST(GroupViewTest, AMemberThatDoesNotAnswerIsGoneForThatReason) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, true});
  EXPECT_TRUE(view.Lose(1, absl::UnavailableError("rank 1 is silent")));
  EXPECT_FALSE(view.Lose(1, absl::UnavailableError("again")));
  EXPECT_FALSE(view.Lose(2, absl::UnavailableError("no such member")));
  view.HearLeave(1, 11);
  EXPECT_THAT(view.gone(1),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("silent")));
}

TEST(GroupViewTest, AMemberThatLeavesBeforeIsAwaitedAnew) {
  GroupView view({0, 10, 3, "p"});
  view.Answered(1, {11, true});
  view.HearLeave(1, 11);
  EXPECT_TRUE(view.awaits(1));
  EXPECT_THAT(view.gone(1), IsOk());
}

TEST(GroupViewTest, RefusesMembersThatWereStartedForSomethingElse) {
  GroupView view(Of(0, 10));
  EXPECT_THAT(view.Hear({1, 11, 2, "two replicas"}).status(),
              StatusIs(kInvalid, HasSubstr("two replicas")));
  EXPECT_THAT(view.refusal(), StatusIs(kInvalid, HasSubstr("one replica")));
  EXPECT_THAT(view.Hear({1, 11, 3, "one replica"}).status(),
              StatusIs(kInvalid, HasSubstr("one of 3 members")));
}

TEST(GroupViewTest, AStrangerCannotSpoilAGroupThatIsFormed) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, true});
  EXPECT_THAT(view.Hear({1, 12, 5, "x"}).status(),
              StatusIs(kInvalid, HasSubstr("5")));
  EXPECT_THAT(view.refusal(), IsOk());
  EXPECT_THAT(view.gone(1), IsOk());
}

TEST(GroupViewTest, RefusesRanksThatThereAreNot) {
  GroupView view(Of(0, 10));
  for (const int rank : {-1, 0, 2}) {
    EXPECT_THAT(view.Hear(Of(rank, 11)).status(),
                StatusIs(kInvalid, HasSubstr("rank")));
    EXPECT_THAT(view.Check(rank, 10, 10),
                StatusIs(kInvalid, HasSubstr("rank")));
  }
  view.HearLeave(7, 1);
  view.Answered(-3, {1, true});
  EXPECT_FALSE(view.formed());
}

TEST(GroupViewTest, MessagesOfOtherStartsAreFenced) {
  GroupView view(Of(0, 10));
  view.Answered(1, {11, true});
  EXPECT_THAT(view.Check(1, 11, 10), IsOk());
  EXPECT_THAT(view.Check(1, 11, 9),
              StatusIs(kAborted, HasSubstr("rank 0 has begun again")));
  EXPECT_THAT(view.Check(1, 12, 10),
              StatusIs(kAborted, HasSubstr("start of rank 1")));
}

// Members start, greet in any order and are started anew at random. Once all
// stay alive, those that see that a member is gone begin again, until all are
// in one group of the same starts.
TEST(GroupViewTest, MembersAgreeHoweverTheyStartAnew) {
  constexpr int kMembers = 3;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    uint64_t incarnation = 0;
    std::array<std::unique_ptr<GroupView>, kMembers> views;
    const auto begin_again = [&](int rank) {
      views[static_cast<size_t>(rank)] = std::make_unique<GroupView>(
          Greeting{rank, ++incarnation, kMembers, "p"});
    };
    for (int r = 0; r < kMembers; ++r) begin_again(r);
    const auto greet = [&](int from, int to) {
      GroupView& one = *views[static_cast<size_t>(from)];
      if (from == to || !one.awaits(to)) return;
      const auto answer = views[static_cast<size_t>(to)]->Hear(one.self());
      ASSERT_THAT(answer, IsOk());
      one.Answered(to, *answer);
    };
    int deaths = 4;
    for (int i = 0; i < 400; ++i) {
      const int from = static_cast<int>(random() % kMembers);
      greet(from, static_cast<int>(random() % kMembers));
      if (deaths > 0 && random() % 20 == 0) {
        --deaths;
        begin_again(static_cast<int>(random() % kMembers));
      }
      for (int r = 0; r < kMembers; ++r) {
        bool broken = false;
        for (int other = 0; other < kMembers; ++other) {
          broken |= !views[static_cast<size_t>(r)]->gone(other).ok();
        }
        if (broken && random() % 4 == 0) begin_again(r);
      }
    }
    for (int r = 0; r < kMembers; ++r) {
      const GroupView& view = *views[static_cast<size_t>(r)];
      ASSERT_TRUE(view.formed()) << "seed " << seed << " rank " << r;
      for (int other = 0; other < kMembers; ++other) {
        ASSERT_THAT(view.gone(other), IsOk()) << "seed " << seed;
        ASSERT_EQ(view.incarnation(other),
                  views[static_cast<size_t>(other)]->self().incarnation)
            << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
