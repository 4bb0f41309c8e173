#include "common/collective/collective.h"

#include <thread>

#include "common/collective/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

TEST(CollectiveTest, AllGetTheLeavesOfTheRoot) {
  const auto group = MakeLocalGroup(2, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (const auto& member : group) {
    threads.emplace_back([&member = *member] {
      EXPECT_THAT(Barrier(member), IsOk());
      const auto leaves = Broadcast(
          member, 1, {Value::Scalar(static_cast<float>(member.rank()))});
      ASSERT_THAT(leaves, IsOk());
      EXPECT_EQ(std::get<Value>(leaves->at(0)), Value::Scalar(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CollectiveTest, ARootOutsideTheGroupIsRefused) {
  const auto group = MakeLocalGroup(2, absl::Minutes(5));
  for (const int root : {-1, 2}) {
    EXPECT_THAT(Broadcast(*group[0], root, {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace lockstep
