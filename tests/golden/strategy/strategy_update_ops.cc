// Updates of strategy_values.

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "tests/golden/strategy/strategy_values_replay.h"

namespace lockstep::golden {
namespace {

using strategy::AtVariable;
using strategy::Copy;
using strategy::Cross;
using strategy::PerReplica;
using strategy::Place;
using strategy::Replica;
using Args = std::vector<Value>;

// A number of Python becomes a scalar.
Value ValueOf(const Node& node) {
  if (node.kind == Node::Kind::kPython) {
    return Value::Scalar(static_cast<float>(ReadNumber(node.other)));
  }
  return std::get<Value>(node.leaf);
}

// The arguments of each copy.
PerReplica<Args> ArgsOf(const Json& op, const StrategyWorker& worker) {
  std::vector<Args> args(
      static_cast<size_t>(worker.strategy->local_replicas()));
  for (const Json& arg : op.at("args")) {
    const PerReplica<Node> nodes = worker.Nodes(arg);
    for (size_t r = 0; r < args.size(); ++r) {
      args[r].push_back(ValueOf(nodes.At(r)));
    }
  }
  return {std::move(args), worker.strategy->first_replica()};
}

absl::StatusOr<Value> UpdateOne(const std::string& fn, Copy& copy,
                                const Args& args) {
  absl::Status status;
  if (fn == "assign") {
    status = copy.Assign(args.at(0));
  } else if (fn == "assign_add") {
    status = copy.AssignAdd(args.at(0));
  } else if (fn == "assign_sub") {
    status = copy.AssignSub(args.at(0));
  } else if (fn == "scale_add") {
    LOCKSTEP_ASSIGN_OR_RETURN(Value value, copy.Read());
    Combine(value.type(), Arithmetic::kMultiply, value.size(),
            value.mutable_bytes().data(), args.at(0).bytes().data());
    status = copy.Assign(value);
    status.Update(copy.AssignAdd(args.at(1)));
  } else if (fn != "nothing") {
    throw BadTrace(absl::StrCat("unknown update \"", fn, "\""));
  }
  if (!status.ok()) return status;
  return copy.Read();
}

absl::StatusOr<Value> PlaceOne(const std::string& fn, const Args& args) {
  Value sum = args.at(0);
  const Value& other = fn == "double" ? args.at(0) : args.at(1);
  Combine(sum.type(), Arithmetic::kAdd, sum.size(), sum.mutable_bytes().data(),
          other.bytes().data());
  return sum;
}

// Without `group` the results of all copies are one tuple. The function
// "nothing" has none, which stands for all.
Results ResultsOf(const Json& op, const AtVariable<Value>& values) {
  Json all = Json::array();
  if (op.at("fn") == "nothing") {
    all.push_back(nullptr);
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      all.push_back(Canonical(Leaf(values.At(i))));
    }
  }
  if (op.at("group").get<bool>()) return all;
  return {Json{{"tuple", all}}};
}

}  // namespace

absl::StatusOr<Results> Update(const Json& op, StrategyWorker& worker) {
  const std::string fn = op.at("fn");
  const strategy::Variable& variable = worker.VariableOf(op.at("variable"));
  const PerReplica<Args> args = ArgsOf(op, worker);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto values, worker.strategy->Across([&](Cross& cross) {
        return cross.Update(
            variable,
            [&](Copy& copy, const Args& mine) {
              return Guarded([&] { return UpdateOne(fn, copy, mine); });
            },
            args);
      }));
  return ResultsOf(op, values);
}

absl::StatusOr<Results> UpdateInReplica(const Json& op,
                                        StrategyWorker& worker) {
  const std::string fn = op.at("fn");
  const strategy::Variable& variable = worker.VariableOf(op.at("variable"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto values,
      worker.strategy->Run(
          [&](Replica& replica, const Args& mine) {
            return replica.Update(
                variable,
                [&](Copy& copy, const Args& of_copy) {
                  return Guarded([&] { return UpdateOne(fn, copy, of_copy); });
                },
                mine);
          },
          ArgsOf(op, worker)));
  // Where there is one copy, its result goes to all replicas.
  std::vector<Value> local(values.local().begin(), values.local().end());
  local.resize(variable.placement().devices.size());
  return ResultsOf(op,
                   AtVariable<Value>(variable.placement(), std::move(local)));
}

absl::StatusOr<Results> UpdateNonSlot(const Json& op, StrategyWorker& worker) {
  const std::string fn = op.at("fn");
  std::vector<strategy::Variable> variables;
  for (const Json& name : op.at("variables")) {
    variables.push_back(worker.VariableOf(name));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto placement,
                            worker.strategy->NonSlotPlacement(variables));
  const PerReplica<Args> args = ArgsOf(op, worker);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto values, worker.strategy->Across([&](Cross& cross) {
        return cross.UpdateNonSlot(
            placement,
            [&](Place&, const Args& mine) {
              return Guarded([&] { return PlaceOne(fn, mine); });
            },
            args);
      }));
  return ResultsOf(op, values);
}

}  // namespace lockstep::golden
