#include "strategy/meeting.h"

#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// Runs a function of each member in a thread, and ends the members.
absl::Status RunAll(
    Meeting& meeting,
    const std::vector<std::function<absl::Status(size_t)>>& members) {
  std::vector<std::thread> threads;
  for (size_t m = 0; m < members.size(); ++m) {
    threads.emplace_back([&, m] { meeting.End(m, members[m](m)); });
  }
  for (std::thread& thread : threads) thread.join();
  return meeting.Outcome();
}

const auto kNothing = [](absl::Span<void* const>) {};

TEST(MeetingTest, OneActsForAllWithWhatEachHasBrought) {
  Meeting meeting(3);
  int acts = 0;
  const auto member = [&](size_t m) {
    for (int round = 0; round < 50; ++round) {
      int mine = static_cast<int>(m) + 1;
      const absl::Status met = meeting.Come(
          m, typeid(int), &mine, [&](absl::Span<void* const> brought) {
            ++acts;
            int sum = 0;
            for (void* each : brought) sum += *static_cast<int*>(each);
            for (void* each : brought) *static_cast<int*>(each) = sum;
          });
      EXPECT_THAT(met, IsOk());
      EXPECT_EQ(mine, 6);
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(RunAll(meeting, {member, member, member}), IsOk());
  EXPECT_EQ(acts, 50);
}

TEST(MeetingTest, AnErrorOfOneEndsTheWaitsOfTheOthersAndIsTheOutcome) {
  Meeting meeting(3);
  const auto waits = [&](size_t m) {
    const absl::Status met = meeting.Come(m, typeid(int), nullptr, kNothing);
    EXPECT_THAT(met, StatusIs(absl::StatusCode::kAborted, HasSubstr("torn")));
    return met;
  };
  const auto fails = [](size_t) { return absl::DataLossError("torn"); };
  EXPECT_THAT(RunAll(meeting, {waits, waits, fails}),
              StatusIs(absl::StatusCode::kDataLoss));
}

// The error of a later round must not become the answer of a member that has
// not woken yet.
TEST(MeetingTest, ARoundThatIsCompleteStaysSoWhenTheNextOneFails) {
  for (int i = 0; i < 300; ++i) {
    Meeting meeting(4);
    const auto comes_twice = [&](size_t m) {
      EXPECT_THAT(meeting.Come(m, typeid(int), nullptr, kNothing), IsOk());
      return meeting.Come(m, typeid(int), nullptr, kNothing);
    };
    const auto fails = [&](size_t m) {
      EXPECT_THAT(meeting.Come(m, typeid(int), nullptr, kNothing), IsOk());
      return absl::DataLossError("torn");
    };
    EXPECT_THAT(RunAll(meeting, {comes_twice, comes_twice, comes_twice, fails}),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(MeetingTest, AMemberThatReturnsInsteadIsNamed) {
  Meeting meeting(2);
  const auto waits = [&](size_t m) {
    return meeting.Come(m, typeid(int), nullptr, kNothing);
  };
  const auto returns = [](size_t) { return absl::OkStatus(); };
  EXPECT_THAT(RunAll(meeting, {waits, returns}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("replica 1 has returned")));
}

TEST(MeetingTest, DifferentPurposesDoNotMeet) {
  Meeting meeting(2);
  const auto one = [&](size_t m) {
    return meeting.Come(m, typeid(int), nullptr, kNothing);
  };
  const auto other = [&](size_t m) {
    return meeting.Come(m, typeid(float), nullptr, kNothing);
  };
  EXPECT_THAT(RunAll(meeting, {one, other}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("different calls")));
}

}  // namespace
}  // namespace lockstep::strategy
