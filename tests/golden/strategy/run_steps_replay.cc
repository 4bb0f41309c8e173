#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "tests/golden/replay.h"
#include "tests/golden/strategy/strategy_workers.h"

namespace lockstep::golden {
namespace {

using strategy::Cross;
using strategy::Dataset;
using strategy::Element;
using strategy::PerReplica;
using strategy::Replica;
using strategy::StepContext;
using strategy::StepOutputs;
using strategy::Variable;

Value SumOf(const Value& numbers) { return SumAlong(numbers, 0).value(); }

Value Scaled(Value value, double scale) {
  const Value factor = Value::Scalar(static_cast<float>(scale));
  Combine(value.type(), Arithmetic::kMultiply, value.size(),
          value.mutable_bytes().data(), factor.bytes().data());
  return value;
}

std::optional<ReduceOp> OpOrNone(const Json& output) {
  if (output.at("reduce_op").is_null()) return std::nullopt;
  return OpOf(output);
}

// One step: every replica adds the sum of its examples to `total` and returns
// it, and the outputs are set where the operation says.
absl::Status Step(const Json& op, const Variable& total, int calls,
                  StepContext& context, Cross& cross,
                  const PerReplica<Element>& inputs) {
  const bool in_replica = op.at("set_in") == "replica";
  const bool others = op.at("non_tensor").get<bool>();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto sums,
      cross.Run(
          [&](Replica& replica, const Element& mine) -> absl::StatusOr<Value> {
            Value sum = SumOf(mine.at(0));
            LOCKSTEP_RETURN_IF_ERROR(replica.AssignAdd(total, sum));
            for (const Json& output : op.at("outputs")) {
              if (!in_replica) break;
              LOCKSTEP_RETURN_IF_ERROR(context.Output(
                  replica, output.at("name"),
                  Scaled(sum, ReadNumber(output.at("scale"))), OpOf(output)));
            }
            if (others) {
              LOCKSTEP_RETURN_IF_ERROR(
                  context.Other(replica, "text", std::string("step")));
            }
            return sum;
          },
          inputs));
  if (in_replica) return absl::OkStatus();
  for (const Json& output : op.at("outputs")) {
    std::vector<Value> scaled;
    for (const Value& sum : sums.local()) {
      scaled.push_back(Scaled(sum, ReadNumber(output.at("scale"))));
    }
    LOCKSTEP_RETURN_IF_ERROR(context.Output(
        cross, output.at("name"),
        PerReplica<Value>(std::move(scaled), sums.first_replica()),
        OpOrNone(output)));
  }
  if (others) context.Other(cross, "cross", calls);
  return absl::OkStatus();
}

// The outputs as local replica `i` sees them.
Json OutputsOf(const StepOutputs& outputs, size_t i) {
  Json result = Json::object();
  for (const auto& [name, output] : outputs.last_step) {
    const Value* value = std::get_if<Value>(&output);
    result[name] = Canonical(Leaf(
        value != nullptr ? *value : std::get<PerReplica<Value>>(output).At(i)));
  }
  return result;
}

Json OthersOf(const StepOutputs& outputs) {
  Json result = Json::object();
  for (const auto& [name, other] : outputs.others) {
    if (const auto* text = std::any_cast<std::string>(&other)) {
      result[name] = {{"tuple", Json::array({Json{{"python", *text}}})}};
    } else if (const auto* number = std::any_cast<int>(&other)) {
      result[name] = {{"python", *number}};
    }
  }
  return result;
}

absl::StatusOr<Results> RunSteps(const Json& op, StrategyWorker& worker) {
  strategy::Strategy& strategy = *worker.strategy;
  strategy::VariableOptions options;
  options.name = "total";
  options.initializer = strategy::Starting(Value::Scalar(0));
  options.synchronization = strategy::Synchronization::kOnRead;
  options.aggregation = strategy::Aggregation::kSum;
  LOCKSTEP_ASSIGN_OR_RETURN(const Variable total, strategy.Create(options));
  const Dataset numbers =
      Dataset::Counted(ReadInt(op.at("range")),
                       [](int64_t i) -> absl::StatusOr<Element> {
                         return Element{Value::Scalar(static_cast<float>(i))};
                       })
          .Batch(ReadInt(op.at("batch")));
  LOCKSTEP_ASSIGN_OR_RETURN(auto data, strategy.Distribute(numbers));
  int calls = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const StepOutputs outputs,
      strategy.RunSteps(data, static_cast<int>(ReadInt(op.at("iterations"))),
                        [&](StepContext& context, Cross& cross,
                            const PerReplica<Element>& inputs) {
                          return Step(op, total, ++calls, context, cross,
                                      inputs);
                        }));
  LOCKSTEP_ASSIGN_OR_RETURN(Value sum, strategy.Read(total));
  Results results;
  for (int i = 0; i < strategy.local_replicas(); ++i) {
    results.push_back(
        {{"calls", outputs.calls},
         {"total", Canonical(Leaf(sum))},
         {"last_step_outputs", OutputsOf(outputs, static_cast<size_t>(i))},
         {"non_tensor_outputs", OthersOf(outputs)}});
  }
  return results;
}

}  // namespace

void ReplayRunSteps(const Json& scenario, Report& report) {
  StrategyWorkers workers(scenario);
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    const Json& op = ops[i];
    report.Begin(i, op.at("op").get<std::string>());
    bool unreduced = false;
    for (const Json& output : op.at("outputs")) {
      unreduced = unreduced || output.at("reduce_op").is_null();
    }
    if (op.at("set_in") == "replica" && unreduced) {
      report.LeaveOut("does not compile");
      continue;
    }
    workers.Compare(op, workers.All([&](StrategyWorker& worker) {
      return RunSteps(op, worker);
    }),
                    report);
  }
}

}  // namespace lockstep::golden
