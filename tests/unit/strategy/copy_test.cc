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
}

TEST_F(CopyTest, AVariableHasNoCopyOnADeviceThatIsNotItsOwn) {
  auto central = Strategy::Make({Kind::kCentral, 2, {}}).value();
  VariableOptions options;
  options.name = "v";
  options.initializer = Starting(Number(5));
  options.colocate_with = central->worker_devices();
  const Variable v = central->Create(options).value();
  EXPECT_THAT(central->Across([&](Cross& cross) {
    return cross.UpdateNonSlot(central->parameter_devices(), [&](Place& place) {
      EXPECT_TRUE(place.MutableBytes(v).empty());
      return place.Read(v).status();
    });
  }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no copy on host")));
}

TEST_F(CopyTest, DevicesOfAnotherStrategyAreRefused) {
  for (const Placement& other :
       {Placement{{"cpu:0", "cpu:1", "gpu:7"}}, Placement{{"host"}}}) {
    EXPECT_THAT(
        strategy_->Across([&](Cross& cross) {
          return cross.UpdateNonSlot(other, [](Place&) { FAIL(); });
        }),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("placement")));
  }
}

TEST_F(CopyTest, TheBytesOfAVariableOnServersAreNotHandedOut) {
  Engine engine({Kind::kParameterServer, 1, {}}, nullptr);
  Cross cross(engine);
  VariableOptions options;
  options.name = "v";
  options.initializer = Starting(Number(5));
  const Variable v = cross.Create(options).value();
  const auto bytes = [&] {
    return cross.UpdateNonSlot(v.placement(), [&](Place& place) {
      return place.MutableBytes(v).size();
    });
  };
  EXPECT_EQ(bytes()->At(0), sizeof(float));
  engine.variables().Serve(v);
  EXPECT_EQ(bytes()->At(0), 0u);
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
