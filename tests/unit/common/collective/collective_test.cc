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
using ::testing::HasSubstr;

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

TEST(CollectiveTest, AScatterGivesEachMemberItsOwnParcel) {
  const auto group = MakeLocalGroup(3, absl::Minutes(5));
  std::vector<std::thread> threads;
  for (const auto& member : group) {
    threads.emplace_back([&member = *member] {
      // Member r gives r + 1 leaves to member 1, and one to the others.
      const auto mine = static_cast<float>(10 * member.rank());
      std::vector<std::vector<Leaf>> parcels = {
          {Value::Scalar(mine)}, {}, {Value::Scalar(mine + 2)}};
      for (int i = 0; i <= member.rank(); ++i) {
        parcels[1].emplace_back(Value::Scalar(mine + 1));
      }
      const auto got = member.Scatter("scatter", parcels);
      ASSERT_THAT(got, IsOk());
      for (size_t from = 0; from < 3; ++from) {
        const Parcel& parcel = (*got)[from];
        EXPECT_EQ(parcel->size(), member.rank() == 1 ? from + 1 : 1);
        EXPECT_EQ(std::get<Value>(parcel->back()),
                  Value::Scalar(static_cast<float>(10 * from) +
                                static_cast<float>(member.rank())));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(group[0]->Scatter("scatter", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there are parcels for 0 members, but the "
                                 "group has 3")));
}

TEST(CollectiveTest, AScatterThatMeetsAnotherCallFailsAtBoth) {
  const auto group = MakeLocalGroup(2, absl::Minutes(5));
  std::thread other([&] {
    EXPECT_THAT(group[1]->Exchange("x", {}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
  });
  EXPECT_THAT(group[0]->Scatter("x", {{Value::Scalar(1)}, {}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  other.join();
}

TEST(CollectiveTest, LeavesThatDoNotFitTheirShapeAreWithheld) {
  std::string description = "sum";
  std::vector<Leaf> leaves = {Value::Scalar(1)};
  EXPECT_THAT(WithholdMisfits(description, leaves), IsOk());
  EXPECT_EQ(description, "sum");
  EXPECT_EQ(leaves.size(), 1u);
  leaves.emplace_back(Value::Of<float>(ElementType::kFloat32, {4}, {1, 2}));
  EXPECT_THAT(WithholdMisfits(description, leaves),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("shape [4] has 2 elements")));
  EXPECT_THAT(description, HasSubstr("sum, but a value of shape [4]"));
  EXPECT_TRUE(leaves.empty());
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
