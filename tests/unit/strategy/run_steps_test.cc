#include "strategy/run_steps.h"

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RunStepsTest : public TwoReplicas {
 protected:
  absl::StatusOr<StepOutputs> Run(int steps) {
    auto data = strategy_->Distribute(Dataset::Range(4).Batch(2)).value();
    int calls = 0;
    return strategy_->RunSteps(
        data, steps,
        [&](StepContext& context, Cross& cross,
            const PerReplica<Element>&) -> absl::Status {
          const float call = static_cast<float>(++calls);
          context.Other(cross, "call", calls);
          absl::Status set =
              context.Output(cross, "kept", Each(call, call + 1));
          set.Update(context.Output(cross, "sum", Each(call, call + 1),
                                    ReduceOp::kSum));
          if (calls == 1) {
            set.Update(context.Output(cross, "first", Each(0, 0)));
          }
          return set;
        });
  }
};

TEST_F(RunStepsTest, TheOutputsAreThoseOfTheLastStep) {
  const auto outputs = Run(2);
  ASSERT_THAT(outputs, IsOk());
  EXPECT_EQ(outputs->calls, 2);
  EXPECT_EQ(std::get<PerReplica<Value>>(outputs->last_step.at("kept")),
            Each(2, 3));
  EXPECT_EQ(std::get<Value>(outputs->last_step.at("sum")), Number(5));
  EXPECT_EQ(outputs->last_step.count("first"), 0u);
  EXPECT_EQ(std::any_cast<int>(outputs->others.at("call")), 2);
}

TEST_F(RunStepsTest, ReplicasThatSetOtherOutputsAreRefusedWithBothCalls) {
  StepOutputs outputs;
  StepContext context(outputs);
  const auto refused = [&](auto set, const std::string& first,
                           const std::string& second) {
    EXPECT_THAT(strategy_->Run([&](Replica& replica) -> absl::Status {
      return set(replica, replica.id() == 0);
    }),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(first), HasSubstr(second))));
  };
  refused(
      [&](Replica& replica, bool first) {
        return context.Output(replica, first ? "loss" : "error", Number(1),
                              ReduceOp::kSum);
      },
      "Output(\"loss\", SUM)", "Output(\"error\", SUM)");
  refused(
      [&](Replica& replica, bool first) {
        return context.Output(replica, "loss", Number(1),
                              first ? ReduceOp::kSum : ReduceOp::kMean);
      },
      "Output(\"loss\", SUM)", "Output(\"loss\", MEAN)");
  refused(
      [&](Replica& replica, bool first) {
        return context.Other(replica, first ? "seed" : "name", 1);
      },
      "Other(\"seed\")", "Other(\"name\")");
  EXPECT_TRUE(outputs.last_step.empty());
  EXPECT_TRUE(outputs.others.empty());
}

// Both outputs are scalars, so their sum would be a number.
TEST_F(RunStepsTest, WorkersThatSetOtherOutputsAreRefusedWithBothCalls) {
  InTwoWorkers(1, [](Strategy& strategy, bool first) {
    StepOutputs outputs;
    StepContext context(outputs);
    EXPECT_THAT(strategy.Across([&](Cross& cross) {
      return context.Output(cross, first ? "loss" : "error",
                            PerReplica<Value>({Number(1)}, 0), ReduceOp::kSum);
    }),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("Output(\"loss\")"),
                               HasSubstr("Output(\"error\")"))));
    EXPECT_TRUE(outputs.last_step.empty());
  });
}

// The other worker would wait for a call that does not come.
TEST_F(RunStepsTest, ReplicasThatSetOtherOutputsAreRefusedInAllWorkers) {
  InTwoWorkers(2, [](Strategy& strategy, bool /*first*/) {
    StepOutputs outputs;
    StepContext context(outputs);
    EXPECT_THAT(strategy.Run([&](Replica& replica) {
      return context.Output(replica, replica.id() == 3 ? "error" : "loss",
                            Number(1), ReduceOp::kSum);
    }),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("local replica 1 Output(\"error\", SUM)")));
  });
}

TEST_F(RunStepsTest, WithoutStepsTheFunctionIsNotCalled) {
  EXPECT_EQ(Run(0)->calls, 0);
}

TEST_F(RunStepsTest, TooLittleDataIsAnError) {
  EXPECT_THAT(Run(3), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace lockstep::strategy
