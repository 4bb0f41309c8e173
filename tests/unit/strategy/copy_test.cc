#include "strategy/copy.h"

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CopyTest : public TwoReplicas {};

TEST_F(CopyTest, EachCopyIsWrittenByItself) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone, 5);
  std::vector<std::string> devices;
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.Update(
        v,
        [&](Copy& copy, const Value& mine) {
          EXPECT_EQ(copy.variable(), v);
          devices.push_back(copy.device());
          return copy.AssignAdd(mine);
        },
        Each(1, 2));
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(6, 7));
  EXPECT_THAT(devices, ElementsAre("cpu:0", "cpu:1"));
}

TEST_F(CopyTest, APlaceReadsAndWritesTheCopiesThatLieThere) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone, 5);
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.UpdateNonSlot(v.placement(), [&](Place& place) {
      EXPECT_THAT(place.Read(v), IsOkAndHolds(Number(5)));
      return place.AssignSub(v, Number(static_cast<float>(place.index())));
    });
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(5, 4));
}

TEST_F(CopyTest, APlaceHasTheCopiesOfItsOwnDeviceAlone) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone, 5);
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.UpdateNonSlot(Placement{{"cpu:1"}}, [&](Place& place) {
      return place.AssignSub(v, Number(1));
    });
  }),
              IsOk());
  EXPECT_THAT(CopiesOf(v), ElementsAre(5, 4));
  EXPECT_THAT(strategy_->Across([&](Cross& cross) {
    return cross.UpdateNonSlot(Placement{{"cpu:0", "cpu:1", "gpu:7"}},
                               [&](Place& place) {
                                 if (place.index() == 2) {
                                   EXPECT_TRUE(place.MutableBytes(v).empty());
                                 }
                                 return place.Read(v).status();
                               });
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no copy on gpu:7")));
}

TEST_F(CopyTest, AVariableOfAnotherStrategyIsRefused) {
  const Variable v = Make(Synchronization::kAuto, Aggregation::kNone);
  auto other = Strategy::Make({Kind::kMirrored, 2, {}}).value();
  const Variable mine =
      other->Create({"w", Starting(Number(1)), {}, {}, {}, {}}).value();
  EXPECT_THAT(other->Across([&](Cross& cross) {
    return cross.Update(mine, [&](Copy& copy) { return copy.Read(v); });
  }),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::strategy
