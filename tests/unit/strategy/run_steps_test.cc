#include "strategy/run_steps.h"

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

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

TEST_F(RunStepsTest, WithoutStepsTheFunctionIsNotCalled) {
  EXPECT_EQ(Run(0)->calls, 0);
}

TEST_F(RunStepsTest, TooLittleDataIsAnError) {
  EXPECT_THAT(Run(3), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace lockstep::strategy
