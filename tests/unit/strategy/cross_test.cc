#include "strategy/cross.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CrossTest : public TwoReplicas {
 protected:
  static Value Row(float number) { return Number(number).Reshaped({1}); }
};

TEST_F(CrossTest, ArgumentsAreUnwrappedAndResultsWrapped) {
  const auto sums = strategy_->Run(
      [](Replica&, const Value& mine, int plain, const std::string& all) {
        return absl::StrCat(mine.Elements<float>()[0], " ", plain, all);
      },
      Each(3, 4), 5, Mirrored<std::string>("!"));
  ASSERT_THAT(sums, IsOk());
  EXPECT_THAT(sums->local(), ElementsAre("3 5!", "4 5!"));
}

TEST_F(CrossTest, AVariableIsPassedWhole) {
  const Variable v = Make(Synchronization::kOnRead, Aggregation::kSum);
  EXPECT_THAT(strategy_->Run(
                  [](Replica& replica, const Variable& whole,
                     const Value& mine) { return replica.Assign(whole, mine); },
                  v, Each(3, 5)),
              IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(3, 5));
  const Variable w = Make(Synchronization::kAuto, Aggregation::kNone);
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.Update(
        w,
        [](Copy& copy, const Variable& whole) {
          return copy.Assign(copy.Read(whole).value());
        },
        v);
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(w), ElementsAre(3, 5));
}

TEST_F(CrossTest, BooleansAreResultsAndArguments) {
  const auto second = strategy_->Run(
      [](Replica& replica) -> bool { return replica.local() == 1; });
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->At(0));
  EXPECT_TRUE(second->At(1));
  EXPECT_THAT(second->local(), ElementsAre(false, true));
  const auto others = strategy_->Run(
      [](Replica& replica, bool mine) {
        return replica.Merge(
            [](Cross&, const PerReplica<bool>& all) {
              return PerReplica<bool>({all.At(1), all.At(0)}, 0);
            },
            mine);
      },
      *second);
  ASSERT_THAT(others, IsOk());
  EXPECT_THAT(others->local(), ElementsAre(true, false));
  const auto made = strategy_->DistributeValues(
      [](const ValueContext& context) { return context.replica_id == 1; });
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(*made, *second);
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  const auto updated = strategy_->Across([&](Cross& cross) {
    return cross.Update(
        v, [](Copy&, bool mine) { return !mine; }, *second);
  });
  ASSERT_THAT(updated, IsOk());
  EXPECT_FALSE(updated->At(1));
}

TEST_F(CrossTest, AnArgumentMustHaveAComponentForEachReplica) {
  EXPECT_THAT(strategy_->Run([](Replica&, const Value&) {},
                             PerReplica<Value>({Number(1)}, 0)),
              StatusIs(kInvalid, HasSubstr("fewer components")));
  // Its placement has three devices, but not as many copies.
  const AtVariable<Value> torn({{"a", "b", "c"}}, std::vector<Value>{});
  EXPECT_THAT(strategy_->Run([](Replica&, const Value&) {}, torn),
              StatusIs(kInvalid, HasSubstr("fewer components")));
}

TEST_F(CrossTest, ResultsOfFewerReplicasAreRefused) {
  auto four = Strategy::Make({Kind::kMirrored, 4, {}}).value();
  EXPECT_THAT(four->Reduce(ReduceOp::kSum, Each(1, 2)),
              StatusIs(kInvalid, HasSubstr("has 2 components")));
  const Variable v =
      Make(Synchronization::kAuto, Aggregation::kOnlyFirstReplica, 7);
  for (const size_t count : {0, 1}) {
    const PerReplica<Value> few(std::vector<Value>(count, Number(1)), 0);
    EXPECT_THAT(strategy_->Reduce(ReduceOp::kSum, few), StatusIs(kInvalid));
    EXPECT_THAT(strategy_->Gather(few, 0), StatusIs(kInvalid));
    EXPECT_THAT(strategy_->Assign(v, few), StatusIs(kInvalid));
    EXPECT_THAT(strategy_->Across([&](Cross& cross) {
      return cross.AssignAggregated(Assignment::kAdd, v, few);
    }),
                StatusIs(kInvalid));
  }
  EXPECT_THAT(CopiesOf(v), ElementsAre(7, 7));
}

TEST_F(CrossTest, ReducedValuesLieOnTheTargetsDevices) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  const absl::Status status =
      strategy_->Across([&](Cross& cross) -> absl::Status {
        const auto at = cross.ReduceTo(ReduceOp::kSum, Each(1, 2), v);
        EXPECT_EQ(at->placement(), v.placement());
        EXPECT_EQ(at->At(1), Number(3));
        const auto one =
            cross.ReduceTo(ReduceOp::kMean, Each(1, 2), Placement{{"cpu:1"}});
        EXPECT_EQ(one->size(), 1u);
        EXPECT_EQ(one->At(0), Number(1.5));
        EXPECT_THAT(
            cross.ReduceTo(ReduceOp::kSum, Each(1, 2), Placement{{"gpu:7"}}),
            StatusIs(kInvalid));
        return absl::OkStatus();
      });
  EXPECT_THAT(status, IsOk());
}

TEST_F(CrossTest, TheMeanOfAMirroredValueIsTheValueOnItsOwnDevices) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  const Placement one{{"cpu:1"}};
  EXPECT_THAT(strategy_->Across([&](Cross& cross) -> absl::Status {
    const auto mean =
        cross.ReduceTo(ReduceOp::kMean, Mirrored<Value>(Number(3)), one);
    EXPECT_EQ(mean->placement(), v.placement());
    EXPECT_EQ(mean->At(1), Number(3));
    const AtVariable<Value> copies(v.placement(), {Number(4), Number(5)});
    EXPECT_EQ(*cross.ReduceTo(ReduceOp::kMean, copies, one), copies);
    EXPECT_THAT(cross.ReduceTo(ReduceOp::kSum, copies, one),
                StatusIs(kInvalid));
    EXPECT_THAT(cross.ReduceTo(ReduceOp::kMean, copies, Placement{{"gpu:7"}}),
                StatusIs(kInvalid));
    // It has a copy for each of the variable's.
    return cross.Update(
        v, [](Copy& copy, const Value& mine) { return copy.Assign(mine); },
        *mean);
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(3, 3));
}

TEST_F(CrossTest, ABatchIsReducedInItsOrder) {
  const std::vector<Leaf> rows = {Slices{{0}, Row(1), std::nullopt},
                                  Slices{{2}, Row(2), std::nullopt}};
  const auto reduced = strategy_->Across([&](Cross& cross) {
    const ReducePair pairs[] = {
        {PerReplica<Leaf>({Number(1), Number(2)}, 0), EveryReplica{}},
        {PerReplica<Leaf>(rows, 0), EveryReplica{}}};
    return cross.BatchReduceTo(ReduceOp::kSum, pairs);
  });
  ASSERT_THAT(reduced, IsOk());
  EXPECT_EQ(std::get<Value>((*reduced)[0].At(0)), Number(3));
  EXPECT_THAT(std::get<Slices>((*reduced)[1].At(0)).indices, ElementsAre(0, 2));
}

TEST_F(CrossTest, OptionsOfABatchAreCheckedWhateverItsTargets) {
  CommunicationOptions options;
  options.bytes_per_pack = -1;
  for (const bool together : {true, false}) {
    const auto reduced = strategy_->Across([&](Cross& cross) {
      const ReducePair pairs[] = {
          {PerReplica<Leaf>({Number(1), Number(2)}, 0), EveryReplica{}},
          {PerReplica<Leaf>({Number(1), Number(2)}, 0),
           together ? Target(EveryReplica{}) : Target(Placement{{"cpu:1"}})}};
      return cross.BatchReduceTo(ReduceOp::kSum, pairs, options);
    });
    EXPECT_THAT(reduced, StatusIs(kInvalid, HasSubstr("bytes_per_pack")));
  }
}

TEST_F(CrossTest, ABatchWithInt32IsRefusedWhateverItsTargets) {
  const auto reduce = [](SumOrder order, Target second) {
    auto strategy = Strategy::Make({Kind::kMirrored, 2, {}, order}).value();
    const Value one = Value::Of<int32_t>(ElementType::kInt32, {}, {1});
    return strategy->Across([&](Cross& cross) {
      const ReducePair pairs[] = {
          {PerReplica<Leaf>({Number(1), Number(2)}, 0), EveryReplica{}},
          {PerReplica<Leaf>({one, one}, 0), second}};
      return cross.BatchReduceTo(ReduceOp::kSum, pairs);
    });
  };
  for (const Target& second :
       {Target(EveryReplica{}), Target(Placement{{"cpu:1"}})}) {
    EXPECT_THAT(reduce(SumOrder::kRing, second),
                StatusIs(kInvalid, HasSubstr("int32")));
    EXPECT_THAT(reduce(SumOrder::kRank, second), IsOk());
  }
}

// The targets of worker 0 let each of its values travel alone.
TEST_F(CrossTest, WorkersWithOtherBatchesGetNoResult) {
  InTwoWorkers(2, [](Strategy& strategy, bool first) {
    const PerReplica<Leaf> value({Number(1), Number(2)}, 0);
    std::vector<ReducePair> pairs;
    pairs.push_back({value, EveryReplica{}});
    if (first) pairs.push_back({value, Placement{{"cpu:1"}}});
    EXPECT_THAT(strategy.Across([&](Cross& cross) {
      return cross.BatchReduceTo(ReduceOp::kSum, pairs);
    }),
                StatusIs(kInvalid, HasSubstr("a batch of 2")));
  });
}

TEST_F(CrossTest, OnReadVariablesAreReadTogetherAndShareASum) {
  const Variable v = Make(Synchronization::kOnRead, Aggregation::kSum);
  EXPECT_THAT(strategy_->Assign(v, Number(5)), IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(2.5, 2.5));
  EXPECT_THAT(strategy_->Read(v), IsOkAndHolds(Number(5)));
  EXPECT_THAT(strategy_->Assign(v, Each(1, 2)),
              StatusIs(kInvalid, HasSubstr("kOnRead")));
  EXPECT_THAT(strategy_->Across(
                  [&](Cross& cross) { return cross.AssignAdd(v, Number(1)); }),
              StatusIs(kInvalid, HasSubstr("sum of its copies")));
  const Variable none = Make(Synchronization::kOnRead, Aggregation::kNone);
  EXPECT_THAT(strategy_->Read(none),
              StatusIs(kInvalid, HasSubstr("without an aggregation")));
}

TEST_F(CrossTest, TheDefaultStrategyKeepsTheRulesOfAVariable) {
  Strategy& none = Strategy::Default();
  const Variable sum = Make(Synchronization::kOnRead, Aggregation::kSum, 1);
  EXPECT_THAT(none.Read(sum), IsOkAndHolds(Number(2)));
  EXPECT_THAT(none.Assign(sum, Number(4)), IsOk());
  EXPECT_THAT(CopiesOf(sum), ElementsAre(2, 2));
  EXPECT_THAT(strategy_->Read(sum), IsOkAndHolds(Number(4)));
  const Variable mean = Make(Synchronization::kOnRead, Aggregation::kMean, 3);
  EXPECT_THAT(none.Read(mean), IsOkAndHolds(Number(3)));
  EXPECT_THAT(none.Assign(mean, Number(5)), IsOk());
  EXPECT_THAT(CopiesOf(mean), ElementsAre(5, 5));
  const Variable written = Make(Synchronization::kAuto, Aggregation::kSum, 3);
  EXPECT_THAT(none.Read(written), IsOkAndHolds(Number(3)));
  EXPECT_THAT(none.Assign(written, Number(5)), IsOk());
  EXPECT_THAT(CopiesOf(written), ElementsAre(5, 5));
}

TEST_F(CrossTest, AWriteThatDoesNotFitChangesNoCopy) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone, 7);
  EXPECT_THAT(strategy_->Assign(v, PerReplica<Value>({Number(1), Row(2)}, 0)),
              StatusIs(kInvalid));
  EXPECT_THAT(CopiesOf(v), ElementsAre(7, 7));
}

// As in TensorFlow, where the result of an update has a component for each
// copy.
TEST_F(CrossTest, EachCopyOfAnAtVariableIsWrittenToItsOwn) {
  const Variable mean = Make(Synchronization::kOnRead, Aggregation::kMean);
  const Variable sum = Make(Synchronization::kOnRead, Aggregation::kSum);
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone, 7);
  const AtVariable<Value> copies(v.placement(), {Number(10), Number(20)});
  EXPECT_THAT(strategy_->Assign(v, copies), IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(10, 20));
  EXPECT_THAT(strategy_->Across([&](Cross& cross) -> absl::Status {
    const auto twice = cross.Update(v, [](Copy& copy) {
      Value value = copy.Read().value();
      EXPECT_THAT(copy.AssignAdd(value), IsOk());
      return copy.Read();
    });
    EXPECT_THAT(cross.Assign(mean, *twice), IsOk());
    EXPECT_THAT(cross.AssignAdd(mean, copies), IsOk());
    EXPECT_THAT(cross.AssignSub(v, copies), IsOk());
    // The share of the first copy.
    return cross.Assign(sum, copies);
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(mean), ElementsAre(30, 60));
  EXPECT_THAT(CopiesOf(v), ElementsAre(10, 20));
  EXPECT_THAT(CopiesOf(sum), ElementsAre(5, 5));
  EXPECT_THAT(strategy_->Assign(v, *strategy_->LocalCopies(mean)), IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(30, 60));
  // Equal copies on one device are a value for all.
  EXPECT_THAT(
      strategy_->Assign(v, AtVariable<Value>(Placement{{"cpu:1"}}, Number(3))),
      IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(3, 3));
}

TEST_F(CrossTest, AnAtVariableOfFewerCopiesThanTheVariableIsRefused) {
  auto four = Strategy::Make({Kind::kMirrored, 4, {}}).value();
  const Variable w =
      four->Create({"w", Starting(Number(1)), {}, {}, {}, {}}).value();
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  EXPECT_THAT(
      four->Assign(w, AtVariable<Value>(v.placement(), {Number(4), Number(5)})),
      StatusIs(kInvalid,
               HasSubstr("\"w\" has 4 copies, but the value that is written to "
                         "them has 2 components")));
}

TEST_F(CrossTest, NonSlotStateOfACentralStrategyLiesByTheSmallestName) {
  auto central = Strategy::Make({Kind::kCentral, 2, {}}).value();
  const Variable b =
      central->Create({"b", Starting(Number(1)), {}, {}, {}, {}}).value();
  const Variable a =
      central->Create({"a", Starting(Number(1)), {}, {}, {}, {}}).value();
  EXPECT_THAT(central->NonSlotPlacement({b, a}), IsOkAndHolds(a.placement()));
  EXPECT_THAT(central->NonSlotPlacement({}), StatusIs(kInvalid));
}

}  // namespace
}  // namespace lockstep::strategy
