#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "tests/golden/replay.h"
#include "tests/golden/strategy/strategy_workers.h"

namespace lockstep::golden {
namespace {

using strategy::Aggregation;
using strategy::Assignment;
using strategy::Copy;
using strategy::Cross;
using strategy::PerReplica;
using strategy::Place;
using strategy::Replica;
using strategy::ScatterOp;
using strategy::Synchronization;
using strategy::Variable;

Assignment AssignmentOf(const std::string& method) {
  if (method == "assign") return Assignment::kAssign;
  if (method == "assign_add") return Assignment::kAdd;
  if (method == "assign_sub") return Assignment::kSubtract;
  throw BadTrace(absl::StrCat("unknown method \"", method, "\""));
}

ScatterOp ScatterOf(const std::string& method) {
  static constexpr std::pair<const char*, ScatterOp> kOps[] = {
      {"scatter_add", ScatterOp::kAdd},
      {"scatter_sub", ScatterOp::kSubtract},
      {"scatter_mul", ScatterOp::kMultiply},
      {"scatter_div", ScatterOp::kDivide},
      {"scatter_min", ScatterOp::kMin},
      {"scatter_max", ScatterOp::kMax},
      {"scatter_update", ScatterOp::kUpdate}};
  for (const auto& [name, op] : kOps) {
    if (method == name) return op;
  }
  throw BadTrace(absl::StrCat("unknown method \"", method, "\""));
}

// Writes in a context that has the three forms of assignment.
template <class Context, class D>
absl::Status WriteIn(Context& context, Assignment how, const Variable& variable,
                     const D& value) {
  switch (how) {
    case Assignment::kAssign:
      return context.Assign(variable, value);
    case Assignment::kAdd:
      return context.AssignAdd(variable, value);
    case Assignment::kSubtract:
      return context.AssignSub(variable, value);
  }
  return absl::InternalError("unknown assignment");
}

PerReplica<Value> ValuesOf(const Json& in, const StrategyWorker& worker) {
  std::vector<Value> values;
  const PerReplica<Node> nodes_in = worker.Nodes(in);
  for (const Node& node : nodes_in.local()) {
    values.push_back(std::get<Value>(node.leaf));
  }
  return {std::move(values), worker.strategy->first_replica()};
}

Results ResultsOf(const PerReplica<Value>& values) {
  Results results;
  for (const Value& value : values.local()) {
    results.push_back(Canonical(Leaf(value)));
  }
  return results;
}

// A plain value that all replicas write is one value of each worker, not one of
// each replica, where it is aggregated.
absl::Status WriteInReplica(Replica& replica, Assignment how,
                            const Variable& variable, const Value& mine,
                            bool plain) {
  const bool reduces = variable.aggregation() == Aggregation::kSum ||
                       variable.aggregation() == Aggregation::kMean;
  if (!plain || !reduces) {
    return WriteIn(replica, how, variable, mine);
  }
  return replica.Merge([&](Cross& cross) {
    return cross.AssignAggregated(how, variable, mine);
  });
}

absl::StatusOr<Results> AssignInReplica(const Json& op, StrategyWorker& worker,
                                        const Variable& variable) {
  const Assignment how = AssignmentOf(op.at("method"));
  const strategy::Kind kind = worker.strategy->kind();
  const bool own_copy =
      kind == strategy::Kind::kOneDevice ||
      (kind != strategy::Kind::kCentral &&
       variable.synchronization() == Synchronization::kOnRead);
  const bool plain = !op.at("value").contains("per_replica") && !own_copy;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto values,
      worker.strategy->Run(
          [&](Replica& replica, const Value& mine) -> absl::StatusOr<Value> {
            LOCKSTEP_RETURN_IF_ERROR(
                WriteInReplica(replica, how, variable, mine, plain));
            return replica.Read(variable);
          },
          ValuesOf(op.at("value"), worker)));
  return ResultsOf(values);
}

// TensorFlow reads a variable back after a write across replicas.
absl::Status AssignAcross(Cross& cross, const Json& op, StrategyWorker& worker,
                          const Variable& variable) {
  const Assignment how = AssignmentOf(op.at("method"));
  const Json& in = op.at("value");
  const PerReplica<Value> values = ValuesOf(in, worker);
  LOCKSTEP_RETURN_IF_ERROR(in.contains("per_replica")
                               ? WriteIn(cross, how, variable, values)
                               : WriteIn(cross, how, variable, values.At(0)));
  return cross.Read(variable).status();
}

absl::StatusOr<Results> Assign(const Json& op, StrategyWorker& worker) {
  const Variable& variable = worker.VariableOf(op.at("variable"));
  const std::string context = op.at("context");
  const Assignment how = AssignmentOf(op.at("method"));
  if (context == "replica") return AssignInReplica(op, worker, variable);
  absl::Status status;
  if (context == "scope" || context == "outside") {
    status = worker.strategy->Across([&](Cross& cross) {
      return AssignAcross(cross, op, worker, variable);
    });
  } else if (context == "merge") {
    status = worker.strategy->Run([&](Replica& replica) {
      return replica.Merge([&](Cross& cross) {
        return AssignAcross(cross, op, worker, variable);
      });
    });
  } else {
    const bool whole = context == "update_whole";
    const PerReplica<Value> values = ValuesOf(op.at("value"), worker);
    status = worker.strategy->Across([&](Cross& cross) {
      return cross.Update(
          variable,
          [&](Copy& copy, const Value& mine) {
            Place& place = copy;
            return WriteIn(place, how, whole ? variable : copy.variable(),
                           mine);
          },
          values);
    });
  }
  if (!status.ok()) return status;
  return Results{};
}

absl::StatusOr<Results> ReadInReplica(const Json& op, StrategyWorker& worker,
                                      const Variable& variable) {
  const std::string context = op.at("context");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto values,
      worker.strategy->Run([&](Replica& replica) -> absl::StatusOr<Value> {
        if (context == "sync_on_read") return replica.ReadAggregated(variable);
        LOCKSTEP_ASSIGN_OR_RETURN(Value value, replica.Read(variable));
        if (context == "replica") return value;
        const Value one =
            ReadValue({{"dtype", std::string(NameOf(value.type()))},
                       {"shape", value.shape()},
                       {"data", std::vector<int>(value.size(), 1)}});
        Combine(value.type(), Arithmetic::kAdd, value.size(),
                value.mutable_bytes().data(), one.bytes().data());
        return value;
      }));
  return ResultsOf(values);
}

absl::StatusOr<Results> ListOfCopies(StrategyWorker& worker,
                                     const Variable& variable) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto copies,
                            worker.strategy->LocalCopies(variable));
  Json list = Json::array();
  for (size_t i = 0; i < copies.size(); ++i) {
    list.push_back(Canonical(Leaf(copies.At(i))));
  }
  return Results{Json{{"list", list}}};
}

absl::StatusOr<Results> Read(const Json& op, StrategyWorker& worker) {
  const Variable& variable = worker.VariableOf(op.at("variable"));
  const std::string context = op.value("context", "scope");
  if (context == "replica" || context == "replica_plus_one" ||
      context == "sync_on_read") {
    return ReadInReplica(op, worker, variable);
  }
  if (context == "update") return ListOfCopies(worker, variable);
  LOCKSTEP_ASSIGN_OR_RETURN(Value value, worker.strategy->Read(variable));
  return Results{Canonical(Leaf(std::move(value)))};
}

absl::StatusOr<Results> LocalCopies(const Json& op, StrategyWorker& worker) {
  return ListOfCopies(worker, worker.VariableOf(op.at("variable")));
}

absl::StatusOr<Results> Restore(const Json& op, StrategyWorker& worker) {
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Assign(
      worker.VariableOf(op.at("variable")), ReadValue(op.at("value"))));
  return Results{};
}

absl::StatusOr<Results> Scatter(const Json& op, StrategyWorker& worker) {
  const Variable& variable = worker.VariableOf(op.at("variable"));
  const ScatterOp how = ScatterOf(op.at("method"));
  std::vector<Slices> rows;
  const PerReplica<Node> nodes_in = worker.Nodes(op.at("value"));
  for (const Node& node : nodes_in.local()) {
    rows.push_back(std::get<Slices>(node.leaf));
  }
  LOCKSTEP_RETURN_IF_ERROR(worker.strategy->Run(
      [&](Replica& replica, const Slices& mine) {
        return replica.Scatter(how, variable, mine);
      },
      PerReplica(std::move(rows), worker.strategy->first_replica())));
  return Results{};
}

absl::StatusOr<Results> ReduceVariable(const Json& op, StrategyWorker& worker) {
  const Variable& variable = worker.VariableOf(op.at("variable"));
  LOCKSTEP_ASSIGN_OR_RETURN(Value value,
                            worker.strategy->Across([&](Cross& cross) {
                              return cross.Reduce(OpOf(op), variable);
                            }));
  if (op.contains("result")) {
    // TensorFlow returns the variable, or a copy of it, for its value.
    const Json& recorded = OfWorker(op.at("result"), worker.index);
    if (recorded.contains("variable")) {
      LOCKSTEP_ASSIGN_OR_RETURN(const auto copies,
                                worker.strategy->LocalCopies(variable));
      return Results{copies.At(0) == value ? CanonicalPart(recorded, 0)
                                           : Canonical(Leaf(value))};
    }
  }
  return Results{Canonical(Leaf(std::move(value)))};
}

void Create(const Json& op, StrategyWorkers& workers, Report& report) {
  const std::string got = StatusName(workers.Create(op.at("variable")));
  if (!report.Expect("status", op.at("status").get<std::string>(), got) ||
      got != "OK") {
    return;
  }
  const Variable& made =
      workers.workers()[0].VariableOf(op.at("variable").at("name"));
  report.Expect("trainable", op.at("trainable").get<bool>() ? "true" : "false",
                made.trainable() ? "true" : "false");
}

using Operation = absl::StatusOr<Results> (*)(const Json&, StrategyWorker&);

Operation OperationOf(const std::string& name) {
  if (name == "assign") return Assign;
  if (name == "read" || name == "save") return Read;
  if (name == "local_copies") return LocalCopies;
  if (name == "restore") return Restore;
  if (name == "scatter") return Scatter;
  if (name == "reduce_variable") return ReduceVariable;
  throw BadTrace(absl::StrCat("unknown operation \"", name, "\""));
}

}  // namespace

void ReplayStrategyVariables(const Json& scenario, Report& report) {
  StrategyWorkers workers(scenario);
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    const Json& op = ops[i];
    const std::string name = op.at("op");
    report.Begin(i, name);
    if (op.value("object_identity", false)) {
      report.LeaveOut("object_identity");
      // Its effect is unknown here: go on from the state that it left.
      workers.TakeState(op.at("state"));
      continue;
    }
    if (name == "create") {
      Create(op, workers, report);
    } else {
      const Operation operation = OperationOf(name);
      workers.Compare(op, workers.All([&](StrategyWorker& worker) {
        return operation(op, worker);
      }),
                      report);
    }
    if (op.contains("state")) workers.CompareState(op.at("state"), report);
  }
}

}  // namespace lockstep::golden
