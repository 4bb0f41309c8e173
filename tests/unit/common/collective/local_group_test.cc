#include "common/collective/local_group.h"

#include <thread>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LocalGroupTest, MembersInThreadsGetEachOthersParcels) {
  const auto group = MakeLocalGroup(3, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (const auto& member : group) {
    threads.emplace_back([&member = *member] {
      for (int call = 0; call < 100; ++call) {
        const float mine = static_cast<float>(100 * member.rank() + call);
        const auto parcels = member.Exchange("x", {Value::Scalar(mine)});
        ASSERT_THAT(parcels, IsOk());
        for (int r = 0; r < 3; ++r) {
          EXPECT_EQ(std::get<Value>((*parcels)[static_cast<size_t>(r)]->at(0)),
                    Value::Scalar(static_cast<float>(100 * r + call)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LocalGroupTest, WithoutATimeoutMembersWaitForEachOther) {
  const auto group = MakeLocalGroup(2, absl::InfiniteDuration());
  std::thread other([&] {
    for (int call = 0; call < 100; ++call) {
      EXPECT_THAT(group[1]->Exchange("x", {}), IsOk());
    }
  });
  for (int call = 0; call < 100; ++call) {
    EXPECT_THAT(group[0]->Exchange("x", {}), IsOk());
  }
  other.join();
}

TEST(LocalGroupTest, AMemberThatDoesNotComeIsNamed) {
  const auto group = MakeLocalGroup(3, absl::ZeroDuration());
  EXPECT_THAT(group[1]->Exchange("barrier", {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("barrier"), HasSubstr("rank 0, 2"))));
}

TEST(LocalGroupTest, ACallMayHaveATimeoutOfItsOwn) {
  const auto group = MakeLocalGroup(2, absl::Seconds(20));
  const ScopedTimeout timeout(group[1].get(), absl::Milliseconds(1));

  EXPECT_THAT(group[1]->Exchange("sum", {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 0"), HasSubstr("within 1ms"))));
}

// The group's own timeout is over at once.
TEST(LocalGroupTest, ACallWithATimeoutOfItsOwnWaitsForOthers) {
  const auto group = MakeLocalGroup(2, absl::ZeroDuration());
  const auto exchange = [&](size_t member) {
    const ScopedTimeout timeout(group[member].get(), absl::Minutes(5));
    return group[member]->Exchange("sum", {}).status();
  };
  std::thread other([&] { EXPECT_THAT(exchange(1), IsOk()); });
  EXPECT_THAT(exchange(0), IsOk());
  other.join();

  EXPECT_THAT(group[1]->Exchange("sum", {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(LocalGroupTest, ScopeWithoutATimeoutOrAGroupChangesNothing) {
  const auto group = MakeLocalGroup(2, absl::ZeroDuration());
  const ScopedTimeout nobody(nullptr, absl::Minutes(5));
  group[1]->SetTimeout(absl::Milliseconds(2));
  { const ScopedTimeout none(group[1].get(), std::nullopt); }
  EXPECT_THAT(
      group[1]->Exchange("sum", {}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 2ms")));
}

// A member that comes too late must not take the exchange for complete.
TEST(LocalGroupTest, ATimeoutEndsTheGroupForAllMembers) {
  const auto group = MakeLocalGroup(2, absl::ZeroDuration());
  EXPECT_THAT(group[0]->Ended(), IsOk());
  EXPECT_THAT(group[1]->Exchange("sum", {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const auto ended = StatusIs(absl::StatusCode::kDeadlineExceeded,
                              HasSubstr("sum: rank 0 did not come"));
  EXPECT_THAT(group[0]->Exchange("sum", {}), ended);
  for (const auto& member : group) {
    EXPECT_THAT(member->Exchange("next", {}), ended);
    EXPECT_THAT(member->Ended(), ended);
  }
}

// The others that wait need not wait for their own timeout.
TEST(LocalGroupTest, ATimeoutEndsTheWaitOfOthers) {
  const auto group = MakeLocalGroup(3, absl::Milliseconds(50));
  constexpr absl::Duration kOwnTimeout = absl::Seconds(100);
  const absl::Time began = absl::Now();
  absl::Status patient;
  std::thread other([&] {
    const ScopedTimeout timeout(group[2].get(), kOwnTimeout);
    patient = group[2]->Exchange("sum", {}).status();
  });
  const auto ended =
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("sum: rank 0"));
  EXPECT_THAT(group[1]->Exchange("sum", {}), ended);
  other.join();
  EXPECT_THAT(patient, ended);
  EXPECT_LT(absl::Now() - began, kOwnTimeout / 2);
}
}  // namespace
}  // namespace lockstep
