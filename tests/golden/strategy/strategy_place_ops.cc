// Places, names and contexts of strategy_values.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/golden/strategy/strategy_values_replay.h"

namespace lockstep::golden {
namespace {

using strategy::Copy;
using strategy::Cross;
using strategy::PerReplica;
using strategy::Replica;
using strategy::Strategy;
using strategy::ValueContext;

// A variable made without a strategy.
absl::StatusOr<strategy::Variable> MakeOutside() {
  strategy::VariableOptions options;
  options.name = "outside";
  options.initializer = strategy::Starting(Value::Scalar(1));
  return Strategy::Default().Create(options);
}

absl::StatusOr<Node> DistributeOne(const std::string& fn,
                                   const std::vector<Leaf>& table,
                                   const ValueContext& context) {
  const auto id = static_cast<size_t>(context.replica_id);
  const auto int32 = [](int number) {
    return Node::Of(Value::Of<int32_t>(ElementType::kInt32, {}, {number}));
  };
  if (fn == "id") return int32(context.replica_id);
  if (fn == "count") return int32(context.num_replicas);
  if (fn == "fraction") {
    return Node::Of(Value::Scalar(static_cast<float>(context.replica_id) /
                                  static_cast<float>(context.num_replicas)));
  }
  if (fn == "table") return Node::Of(table.at(id));
  if (fn == "constant") return Node::Of(table.at(0));
  if (fn != "nested") throw BadTrace(absl::StrCat("unknown \"", fn, "\""));
  const Node count =
      Node::Of(Node::Kind::kTuple, {{"0", int32(context.num_replicas)}});
  return Node::Of(Node::Kind::kList,
                  {{"0", Node::Of(table.at(id))}, {"1", count}});
}

}  // namespace

Json DevicesOf(const strategy::Placement& placement,
               const StrategyWorker& worker) {
  const auto& all = worker.strategy->worker_devices().devices;
  Json devices = Json::array();
  for (const std::string& device : placement.devices) {
    const auto found = std::find(all.begin(), all.end(), device);
    devices.push_back(found == all.end() ? Json("CPU:0")
                                         : Json(found - all.begin()));
  }
  return devices;
}

absl::StatusOr<Results> Devices(const Json&, StrategyWorker& worker) {
  const Strategy& strategy = *worker.strategy;
  return Results{Json{
      {"worker_devices", DevicesOf(strategy.worker_devices(), worker)},
      {"parameter_devices", DevicesOf(strategy.parameter_devices(), worker)},
      {"num_replicas_in_sync", strategy.replicas()}}};
}

absl::StatusOr<Results> NonSlotDevices(const Json& op, StrategyWorker& worker) {
  std::vector<strategy::Variable> variables;
  for (const Json& name : op.at("variables")) {
    variables.push_back(worker.VariableOf(name));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto placement,
                            worker.strategy->NonSlotPlacement(variables));
  const Json& recorded = OfWorker(op.at("result"), worker.index);
  // TensorFlow names a variable where it means the devices of one.
  if (recorded.is_object()) {
    const auto& named = worker.VariableOf(recorded.at("variable"));
    return Results{placement == named.placement()
                       ? Json{{"variable", named.name()}}
                       : DevicesOf(placement, worker)};
  }
  return Results{DevicesOf(placement, worker)};
}

absl::StatusOr<Results> ColocateForeign(const Json&, StrategyWorker& worker) {
  LOCKSTEP_ASSIGN_OR_RETURN(const strategy::Variable outside, MakeOutside());
  strategy::VariableOptions options;
  options.name = "colocated";
  options.initializer = strategy::Starting(Value::Scalar(1));
  options.colocate_with = outside;
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Create(options).status());
  return Results{nullptr};
}

absl::StatusOr<Results> CreatedInScope(const Json& op, StrategyWorker& worker) {
  if (op.at("variable") != "outside") {
    return Results{worker.strategy->Owns(worker.VariableOf(op.at("variable")))};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const strategy::Variable outside, MakeOutside());
  return Results{worker.strategy->Owns(outside)};
}

absl::StatusOr<Results> ValueContainer(const Json& op, StrategyWorker& worker) {
  const strategy::Variable& variable = worker.VariableOf(op.at("variable"));
  Json copies = Json::array();
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Across([&](Cross& cross) {
    return cross.Update(variable, [&](Copy& copy) {
      copies.push_back(copy.variable().name());
      return absl::OkStatus();
    });
  }));
  // A component of a PerReplica of tensors knows no container: in TensorFlow
  // neither, it is "itself".
  Json result = {{"copies", copies}, {"variable", variable.name()}};
  const Json& recorded = OfWorker(op.at("result"), worker.index);
  if (recorded.contains("component")) result["component"] = "itself";
  return Results{result};
}

absl::StatusOr<Results> Names(const Json& op, StrategyWorker& worker) {
  const strategy::Variable& variable = worker.VariableOf(op.at("variable"));
  Json names = Json::array();
  for (size_t i = 0; i < variable.placement().devices.size(); ++i) {
    names.push_back(variable.CopyName(i));
  }
  return Results{names};
}

// The contexts that a typed interface has: outside, across replicas, in a
// replica, in a merge. Compares whether there is a replica, and whose.
absl::StatusOr<Results> Contexts(const Json& op, StrategyWorker& worker) {
  const Strategy& strategy = *worker.strategy;
  const bool is_default = strategy.kind() == strategy::Kind::kDefault;
  const auto seen = [&] {
    Replica* const replica = Replica::Current();
    return Json{
        {"in_cross_replica_context", replica == nullptr},
        {"replica_context", replica != nullptr},
        {"has_strategy",
         replica == nullptr ? !is_default : !replica->IsOfDefaultStrategy()}};
  };
  Json contexts = {{"outside", seen()}};
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Across([&](Cross&) {
    if (!is_default) contexts["scope"] = seen();
    return worker.strategy->Across([&](Cross&) {
      if (!is_default) contexts["scope_twice"] = seen();
      return absl::OkStatus();
    });
  }));
  int updates = 0;
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Run([&](Replica& replica) {
    if (replica.local() == 0) contexts["run"] = seen();
    return replica.Merge([&](Cross& cross) {
      contexts["merge"] = seen();
      return cross.Update(worker.VariableOf(op.at("variable")), [&](Copy&) {
        ++updates;
        return absl::OkStatus();
      });
    });
  }));
  const Json& recorded = OfWorker(op.at("result"), worker.index);
  for (const auto& [name, context] : contexts.items()) {
    for (const auto& [field, value] : context.items()) {
      if (recorded.at(name).at(field) == value) continue;
      return Results{{{"context", name}, {"field", field}, {"value", value}}};
    }
  }
  if (recorded.at("update_calls") != updates) {
    return Results{{{"update_calls", updates}}};
  }
  return Results{recorded};
}

absl::StatusOr<Results> ScopeOfAnother(const Json& op, StrategyWorker& worker) {
  auto rival = Strategy::Make({strategy::Kind::kMirrored, 2, {}});
  if (!rival.ok()) return rival.status();
  Strategy& strategy = *worker.strategy;
  const std::string what = op.at("what");
  const Value value =
      std::get<Value>(ReadNode(op.at("value"), worker.SeatOf(0)).leaf);
  const strategy::Variable& variable = worker.VariableOf(op.at("variable"));
  LOCKSTEP_RETURN_IF_ERROR((*rival)->Across([&](Cross&) -> absl::Status {
    if (what == "scope") {
      return strategy.Across([](Cross&) { return absl::OkStatus(); });
    }
    if (what == "reduce") {
      return strategy.Reduce(ReduceOp::kMean, value).status();
    }
    if (what == "run") {
      return strategy.Run([](Replica&) { return absl::OkStatus(); });
    }
    if (what == "update") {
      return strategy.Across([&](Cross& cross) {
        return cross.Update(variable,
                            [&](Copy& copy) { return copy.Assign(value); });
      });
    }
    return strategy.Assign(variable, value);
  }));
  return Results{nullptr};
}

absl::StatusOr<Results> LocalResults(const Json& op, StrategyWorker& worker) {
  const Json& value = op.at("value");
  const bool wrapped =
      Contains(value, "per_replica") || Contains(value, "mirrored");
  Json tuple = Json::array();
  const PerReplica<Node> nodes_in = worker.Nodes(value);
  for (const Node& node : nodes_in.local()) {
    tuple.push_back(Canonical(node));
    if (!wrapped) break;
  }
  return Results{Json{{"tuple", tuple}}};
}

absl::StatusOr<Results> DistributeValues(const Json& op,
                                         StrategyWorker& worker) {
  const std::string fn = op.at("fn");
  std::vector<Leaf> table;
  for (const Json& entry : op.value("table", Json::array())) {
    table.push_back(ReadLeaf(entry));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto made,
      worker.strategy->DistributeValues([&](const ValueContext& context) {
        return DistributeOne(fn, table, context);
      }));
  Results results;
  for (const Node& node : made.local()) results.push_back(Canonical(node));
  return results;
}

}  // namespace lockstep::golden
