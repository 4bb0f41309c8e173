#include "strategy/values/distributed.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::strategy {
namespace {

using ::testing::ElementsAre;

TEST(DistributedTest, EachReplicaGetsItsComponent) {
  const PerReplica<int> each({3, 4}, 2);
  EXPECT_EQ(ComponentOf(each, 1), 4);
  EXPECT_EQ(each.first_replica(), 2);
  EXPECT_THAT(each.local(), ElementsAre(3, 4));
  EXPECT_EQ(ComponentOf(Mirrored<int>(5), 1), 5);
  EXPECT_EQ(ComponentOf(7, 1), 7);
}

TEST(DistributedTest, EqualCopiesAreHeldOnce) {
  const Placement two{{"cpu:0", "cpu:1"}};
  const AtVariable<int> equal(two, 5);
  EXPECT_EQ(equal.size(), 2u);
  EXPECT_EQ(equal.At(1), 5);
  const AtVariable<int> differ(two, std::vector<int>{5, 6});
  EXPECT_EQ(differ.At(1), 6);
}

TEST(DistributedTest, ComponentsCanBeBooleans) {
  const PerReplica<bool> each({true, false}, 0);
  const bool& second = each.At(1);
  EXPECT_FALSE(second);
  EXPECT_EQ(&ComponentOf(each, 1), &second);
  EXPECT_THAT(each.local(), ElementsAre(true, false));
  EXPECT_EQ(each, PerReplica<bool>({true, false}, 0));
  const Placement two{{"cpu:0", "cpu:1"}};
  EXPECT_TRUE(AtVariable<bool>(two, true).At(1));
  const AtVariable<bool> differ(two, std::vector<bool>{true, false});
  EXPECT_FALSE(differ.At(1));
}

TEST(DistributedTest, TheFormOfAValueIsKept) {
  const Value x = Value::Scalar(1);
  EXPECT_EQ(ToDistributed(x).form, Distributed::Form::kPlain);
  EXPECT_EQ(ToDistributed(Mirrored(x)).form, Distributed::Form::kMirrored);
  const Distributed each = ToDistributed(PerReplica<Value>({x, x, x}, 0));
  EXPECT_EQ(each.form, Distributed::Form::kPerReplica);
  EXPECT_EQ(each.local.size(), 3u);
  EXPECT_EQ(FromLeaf<Value>(each.local[2]), x);
}

// Where a value lies is its type.
static_assert(!std::is_convertible_v<PerReplica<Value>, Value>);
static_assert(!std::is_convertible_v<Mirrored<Value>, PerReplica<Value>>);
static_assert(!std::is_convertible_v<PerReplica<Value>, AtVariable<Value>>);
static_assert(Reducible<PerReplica<Slices>>);
static_assert(!Reducible<PerReplica<int>>);
static_assert(!Reducible<std::string>);

// The elements of a temporary would be gone.
template <class T>
concept HasLocal = requires(T value) {
  std::forward<T>(value).local();
};
static_assert(HasLocal<const PerReplica<int>&>);
static_assert(!HasLocal<const PerReplica<int>>);

}  // namespace
}  // namespace lockstep::strategy
