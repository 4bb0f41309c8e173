// Cases 66 to 74: contexts.

#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kWrongContext = absl::StatusCode::kFailedPrecondition;

class ContextCases : public CaseTest {};

TEST_P(ContextCases, Case66To68AThreadIsInOneContextAtATime) {
  Each([&](Strategy& s) {
    EXPECT_TRUE(Replica::Current()->IsOfDefaultStrategy());
    EXPECT_THAT(s.Across([&](Cross& cross) {
      EXPECT_EQ(Replica::Current(), nullptr);
      return cross.Run([](Replica& replica) {
        EXPECT_EQ(Replica::Current(), &replica);
        EXPECT_FALSE(replica.IsOfDefaultStrategy());
        return replica.Merge(
            [](Cross&) { EXPECT_EQ(Replica::Current(), nullptr); });
      });
    }),
                IsOk());
    EXPECT_TRUE(Replica::Current()->IsOfDefaultStrategy());
  });
}

TEST_P(ContextCases, Case69And70AnotherStrategyIsRefusedMeanwhile) {
  Each([&](Strategy& s) {
    auto rival = Strategy::Make({Kind::kMirrored, 2, {}}).value();
    const Variable v = s.Create(Named("v", Number(1))).value();
    const auto nothing = [](Cross&) { return absl::OkStatus(); };
    EXPECT_THAT(s.Across([&](Cross&) { return s.Across(nothing); }), IsOk());
    EXPECT_THAT(rival->Across([&](Cross&) { return s.Across(nothing); }),
                StatusIs(kWrongContext, HasSubstr("another strategy")));
    EXPECT_THAT(rival->Across([&](Cross&) {
      return s.Reduce(ReduceOp::kMean, Number(1)).status();
    }),
                StatusIs(kWrongContext));
    EXPECT_THAT(rival->Across([&](Cross&) { return s.Assign(v, Number(2)); }),
                StatusIs(kWrongContext));
  });
}

TEST_P(ContextCases, Case71GatherInsideRunIsRefused) {
  Each([&](Strategy& s) {
    EXPECT_THAT(s.Run([&](Replica&) { return s.Gather(Row({1}), 0).status(); }),
                StatusIs(kWrongContext, HasSubstr("Merge")));
  });
}

TEST_P(ContextCases, Case72And73StrategiesKnowTheirVariables) {
  Each([&](Strategy& s) {
    const Variable v = s.Create(Named("v", Number(1))).value();
    const Variable foreign =
        Strategy::Default().Create(Named("w", Number(1))).value();
    EXPECT_TRUE(s.Owns(v));
    EXPECT_FALSE(s.Owns(foreign));
    VariableOptions options = Named("slot", Number(0));
    options.colocate_with = v;
    EXPECT_EQ(s.Create(options)->placement(), v.placement());
    options.colocate_with = foreign;
    EXPECT_THAT(s.Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument));
  });
}

TEST_P(ContextCases, Case74AnErrorReachesTheCallerFromAnyDepth) {
  const auto fails = [] { return absl::DataLossError("torn"); };
  Each([&](Strategy& s) {
    const auto in_run = [&](Replica&) { return fails(); };
    const auto in_merge = [&](Replica& replica) {
      return replica.Merge([&](Cross&) { return fails(); });
    };
    const auto in_run_in_merge = [&](Replica& replica) {
      return replica.Merge([&](Cross& cross) { return cross.Run(in_run); });
    };
    const auto deepest = [&](Replica& replica) {
      return replica.Merge([&](Cross& cross) { return cross.Run(in_merge); });
    };
    const auto torn = StatusIs(absl::StatusCode::kDataLoss, "torn");
    EXPECT_THAT(s.Run(in_run), torn);
    EXPECT_THAT(s.Run(in_merge), torn);
    EXPECT_THAT(s.Run(in_run_in_merge), torn);
    EXPECT_THAT(s.Run(deepest), torn);
    // One replica fails while the others wait for it.
    EXPECT_THAT(s.Run([&](Replica& replica) {
      if (replica.local() == 0) return absl::Status(fails());
      return replica.Merge([](Cross&) { return absl::OkStatus(); });
    }),
                torn);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ContextCases, ::testing::ValuesIn(AllShapes()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
