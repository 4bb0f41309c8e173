#include "common/collective/local_group.h"

#include <thread>

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

}  // namespace
}  // namespace lockstep
