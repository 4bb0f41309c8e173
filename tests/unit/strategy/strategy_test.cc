#include "strategy/strategy.h"

#include "common/collective/local_group.h"
#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(StrategyTest, AGroupOfWorkersIsForSeveralWorkersAlone) {
  EXPECT_THAT(Strategy::Make({Kind::kMultiWorkerMirrored, 2, {}}),
              StatusIs(kInvalid, HasSubstr("needs the group")));
  auto group = MakeLocalGroup(1, absl::Minutes(5));
  EXPECT_THAT(Strategy::Make({Kind::kMirrored, 2, {}}, std::move(group[0])),
              StatusIs(kInvalid));
  EXPECT_THAT(Strategy::Make({Kind::kOneDevice, 2, {}}), StatusIs(kInvalid));
}

TEST(StrategyTest, Worker0KeepsWhatAllCompute) {
  auto group = MakeLocalGroup(2, absl::Minutes(5));
  const StrategyOptions options{Kind::kMultiWorkerMirrored, 2, {}};
  const auto first = Strategy::Make(options, std::move(group[0])).value();
  const auto second = Strategy::Make(options, std::move(group[1])).value();
  EXPECT_TRUE(first->should_init() && second->should_init());
  EXPECT_TRUE(first->should_checkpoint());
  EXPECT_FALSE(second->should_checkpoint());
  EXPECT_TRUE(first->should_save_summary());
  EXPECT_FALSE(second->should_save_summary());
  EXPECT_EQ(second->first_replica(), 2);
  EXPECT_EQ(second->replicas(), 4);
}

TEST(StrategyTest, CodeWithoutAStrategyRunsInOneReplica) {
  Replica* const replica = Replica::Current();
  ASSERT_NE(replica, nullptr);
  EXPECT_TRUE(replica->IsOfDefaultStrategy());
  EXPECT_EQ(replica->count(), 1);
  EXPECT_THAT(replica->AllReduce(ReduceOp::kSum, Value::Scalar(3)), IsOk());
  EXPECT_EQ(Strategy::Default().replicas(), 1);
}

TEST(StrategyTest, OwnVariablesAreKnown) {
  auto strategy = Strategy::Make({Kind::kMirrored, 2, {}}).value();
  const VariableOptions options{"v", Starting(Value::Scalar(1)), {}, {}, {},
                                {}};
  EXPECT_TRUE(strategy->Owns(strategy->Create(options).value()));
  EXPECT_FALSE(strategy->Owns(Strategy::Default().Create(options).value()));
}

TEST(StrategyTest, ValuesAreMadeForEachReplicaByItsNumber) {
  auto strategy = Strategy::Make({Kind::kMirrored, 2, {}}).value();
  const auto made = strategy->DistributeValues([](const ValueContext& context) {
    return context.replica_id * 10 + context.num_replicas;
  });
  EXPECT_EQ(*made, PerReplica<int>({2, 12}, 0));
}

}  // namespace
}  // namespace lockstep::strategy
