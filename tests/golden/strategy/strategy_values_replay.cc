#include "tests/golden/strategy/strategy_values_replay.h"

#include <map>

#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

using Operation = absl::StatusOr<Results> (*)(const Json& op,
                                              StrategyWorker& worker);

Operation OperationOf(const std::string& name) {
  static const auto& operations = *new std::map<std::string, Operation>{
      {"run", RunFunction},
      {"merge_call", MergeCall},
      {"all_reduce", AllReduce},
      {"all_gather", AllGather},
      {"reduce", ReduceToHost},
      {"gather", GatherAcross},
      {"reduce_to", ReduceTo},
      {"batch_reduce_to", BatchReduceTo},
      {"broadcast_to", BroadcastTo},
      {"update", Update},
      {"update_in_replica", UpdateInReplica},
      {"update_non_slot", UpdateNonSlot},
      {"devices", Devices},
      {"non_slot_devices", NonSlotDevices},
      {"colocate_foreign", ColocateForeign},
      {"created_in_scope", CreatedInScope},
      {"value_container", ValueContainer},
      {"names", Names},
      {"contexts", Contexts},
      {"scope_of_another", ScopeOfAnother},
      {"local_results", LocalResults},
      {"distribute_values", DistributeValues},
  };
  const auto found = operations.find(name);
  if (found == operations.end()) throw BadTrace("unknown operation " + name);
  return found->second;
}

}  // namespace

std::string WhyLeftOut(const Json& op, const StrategyWorkers& workers) {
  const std::string name = op.at("op");
  const std::string fn = op.value("fn", Json("")).get<std::string>();
  const strategy::Strategy& strategy = *workers.workers()[0].strategy;
  const bool is_default = strategy.kind() == strategy::Kind::kDefault;
  if (op.value("object_identity", false)) return "object_identity";
  if (name == "run_bad_args" || fn == "lengths_differ" || fn == "keys_differ") {
    return "does not compile";
  }
  if (name == "merge_call" && fn == "kind") {
    return "a merge function always gets a PerReplica";
  }
  if (name == "reduce" && strategy.kind() == strategy::Kind::kCentral &&
      (op.at("value").contains("dict") || op.at("value").contains("list"))) {
    return "one value is reduced at a time, so no nested one is refused";
  }
  if (op.value("destination", Json()) == "list") {
    return "a list of devices is a Placement";
  }
  if (name == "colocate_no_scope" ||
      (is_default && (fn == "scope_in_replica" || name == "devices"))) {
    return "there is no scope, and the default strategy has a device";
  }
  if (name == "scope_of_another" && op.at("status") == "OK") {
    return "a variable of one device knows its strategy";
  }
  const bool takes_python =
      name == "run" || name == "broadcast_to" ||
      (name == "local_results" && op.at("value").contains("python"));
  if (takes_python && (Contains(op.value("args", Json()), "python") ||
                       Contains(op.value("value", Json()), "python"))) {
    return "a number of Python is no tensor";
  }
  const bool host = Contains(op.value("value", Json()), "numpy");
  if (host && strategy.workers() == 1 && strategy.replicas() > 1 &&
      op.at("reduce_op") == "SUM") {
    return "zeros of the host are no special case";
  }
  return "";
}

void ReplayStrategyValues(const Json& scenario, Report& report) {
  StrategyWorkers workers(scenario);
  const Json none = Json::array();
  const Json& variables =
      scenario.contains("variables") ? scenario.at("variables") : none;
  for (const Json& variable : variables) {
    if (variable.contains("colocate_with")) continue;
    report.Expect("status of a variable", "OK",
                  StatusName(workers.Create(variable)));
  }
  const Json& ops = scenario.at("ops");
  bool broken = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    const Json& op = ops[i];
    const std::string name = op.at("op");
    report.Begin(i, name);
    if (broken) {
      report.LeaveOut("TensorFlow's collectives stay broken");
      continue;
    }
    broken = scenario.value("fatal", false) && op.at("status") != "OK";
    const std::string reason = WhyLeftOut(op, workers);
    if (!reason.empty()) {
      report.LeaveOut(reason);
      continue;
    }
    if (name == "colocate") {
      for (const Json& variable : variables) {
        if (variable.at("name") != op.at("variable")) continue;
        report.Expect("status", "OK", StatusName(workers.Create(variable)));
      }
      const auto places = workers.All([&](StrategyWorker& worker) {
        const auto& made = worker.VariableOf(op.at("variable"));
        return absl::StatusOr<Results>(
            Results{DevicesOf(made.placement(), worker)});
      });
      workers.Compare(op, places, report);
      continue;
    }
    const Operation operation = OperationOf(name);
    workers.Compare(op, workers.All([&](StrategyWorker& worker) {
      return operation(op, worker);
    }),
                    report);
    if (op.contains("after")) workers.CompareState(op.at("after"), report);
  }
}

}  // namespace lockstep::golden
