// Reductions, gathers and broadcasts of strategy_values.

#include <optional>
#include <variant>

#include "common/base/status_macros.h"
#include "tests/golden/strategy/strategy_values_replay.h"

namespace lockstep::golden {
namespace {

using strategy::AtVariable;
using strategy::CommunicationOptions;
using strategy::Cross;
using strategy::Mirrored;
using strategy::PerReplica;
using strategy::Replica;
using strategy::Target;

// A value that goes in, in the form that the product has for it.
using Form = std::variant<PerReplica<Leaf>, Mirrored<Leaf>, Leaf>;

Form FormOf(const Json& in, const StrategyWorker& worker) {
  if (in.contains("per_replica")) {
    std::vector<Leaf> leaves;
    const PerReplica<Node> nodes_in = worker.Nodes(in);
    for (const Node& node : nodes_in.local()) {
      leaves.push_back(node.leaf);
    }
    return PerReplica<Leaf>(std::move(leaves),
                            worker.strategy->first_replica());
  }
  const Leaf leaf = ReadNode(in, worker.SeatOf(0)).leaf;
  if (in.contains("mirrored")) return Mirrored<Leaf>(leaf);
  return leaf;
}

Target TargetOf(const Json& destination, const StrategyWorker& worker) {
  if (destination.is_string()) return strategy::EveryReplica{};
  if (destination.is_object()) {
    return worker.VariableOf(destination.at("variable"));
  }
  const auto device = static_cast<size_t>(ReadInt(destination));
  return strategy::Placement{
      {worker.strategy->worker_devices().devices.at(device)}};
}

Results ResultsOf(const AtVariable<Leaf>& value) {
  Results results;
  for (size_t i = 0; i < value.size(); ++i) {
    results.push_back(Canonical(value.At(i)));
  }
  return results;
}

CommunicationOptions PackingOf(const Json& op) {
  CommunicationOptions options;
  if (op.value("graph", false)) {
    options.bytes_per_pack = ReadInt(op.value("bytes_per_pack", Json(0)));
  }
  return options;
}

std::vector<int64_t> AxesOf(const Json& op) {
  const Json axis = op.value("axis", Json());
  if (axis.is_null()) return {};
  if (!axis.is_array()) return {ReadInt(axis)};
  return ReadInts(axis);
}

}  // namespace

absl::StatusOr<Results> AllReduce(const Json& op, StrategyWorker& worker) {
  const ReduceOp reduce = OpOf(op);
  const CommunicationOptions options = PackingOf(op);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto nodes,
      worker.strategy->Run(
          [&](Replica& replica, Node mine) -> absl::StatusOr<Node> {
            std::vector<Leaf> leaves;
            ForEachLeaf(mine, [&](Leaf& leaf) { leaves.push_back(leaf); });
            LOCKSTEP_ASSIGN_OR_RETURN(
                std::vector<Leaf> reduced,
                replica.AllReduce(reduce, std::move(leaves), options));
            auto next = reduced.begin();
            ForEachLeaf(mine, [&](Leaf& leaf) { leaf = *next++; });
            return mine;
          },
          worker.Nodes(op.at("value"))));
  Results results;
  for (const Node& node : nodes.local()) results.push_back(Canonical(node));
  return results;
}

absl::StatusOr<Results> AllGather(const Json& op, StrategyWorker& worker) {
  const int64_t axis = ReadInt(op.at("axis"));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto nodes,
      worker.strategy->Run(
          [&](Replica& replica, Node mine) -> absl::StatusOr<Node> {
            absl::Status status;
            ForEachLeaf(mine, [&](Leaf& leaf) {
              const Value* dense = std::get_if<Value>(&leaf);
              auto joined =
                  dense == nullptr
                      ? absl::InvalidArgumentError("slices cannot be gathered")
                      : replica.AllGather(*dense, axis);
              status.Update(joined.status());
              if (joined.ok()) leaf = *std::move(joined);
            });
            if (!status.ok()) return status;
            return mine;
          },
          worker.Nodes(op.at("value"))));
  Results results;
  for (const Node& node : nodes.local()) results.push_back(Canonical(node));
  return results;
}

absl::StatusOr<Results> ReduceToHost(const Json& op, StrategyWorker& worker) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ReduceOp reduce,
      ParseReduceOp(op.at("reduce_op").get<std::string>()));
  const std::vector<int64_t> axes = AxesOf(op);
  const Json& value = op.at("value");
  if (Contains(value, "dict") || Contains(value, "list")) {
    // The product reduces one value a call.
    std::vector<PerReplica<Leaf>> columns;
    std::vector<Node> nodes;
    const PerReplica<Node> nodes_in = worker.Nodes(value);
    for (const Node& node : nodes_in.local()) nodes.push_back(node);
    std::vector<std::vector<Leaf>> by_replica(nodes.size());
    for (size_t r = 0; r < nodes.size(); ++r) {
      ForEachLeaf(nodes[r], [&](Leaf& leaf) { by_replica[r].push_back(leaf); });
    }
    std::vector<Value> reduced;
    for (size_t i = 0; i < by_replica[0].size(); ++i) {
      std::vector<Leaf> column;
      for (const auto& row : by_replica) column.push_back(row.at(i));
      LOCKSTEP_ASSIGN_OR_RETURN(
          reduced.emplace_back(),
          worker.strategy->Reduce(
              reduce,
              PerReplica<Leaf>(column, worker.strategy->first_replica()),
              axes));
    }
    size_t next = 0;
    ForEachLeaf(nodes[0], [&](Leaf& leaf) { leaf = reduced.at(next++); });
    return Results{Canonical(nodes[0])};
  }
  const Form form = FormOf(value, worker);
  return std::visit(
      [&](const auto& mine) -> absl::StatusOr<Results> {
        if (axes.empty()) {
          LOCKSTEP_ASSIGN_OR_RETURN(
              const auto reduced, worker.strategy->Across([&](Cross& cross) {
                return cross.ReduceTo(
                    reduce, mine,
                    strategy::Placement{
                        {worker.strategy->worker_devices().devices[0]}});
              }));
          return Results{Canonical(reduced.At(0))};
        }
        LOCKSTEP_ASSIGN_OR_RETURN(Value reduced,
                                  worker.strategy->Reduce(reduce, mine, axes));
        return Results{Canonical(Leaf(std::move(reduced)))};
      },
      form);
}

absl::StatusOr<Results> GatherAcross(const Json& op, StrategyWorker& worker) {
  return std::visit(
      [&](const auto& mine) -> absl::StatusOr<Results> {
        LOCKSTEP_ASSIGN_OR_RETURN(
            const Leaf joined,
            worker.strategy->Gather(mine, ReadInt(op.at("axis"))));
        return Results{Canonical(joined)};
      },
      FormOf(op.at("value"), worker));
}

absl::StatusOr<Results> ReduceTo(const Json& op, StrategyWorker& worker) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ReduceOp reduce,
      ParseReduceOp(op.at("reduce_op").get<std::string>()));
  const Target target = TargetOf(op.at("destination"), worker);
  return std::visit(
      [&](const auto& mine) -> absl::StatusOr<Results> {
        LOCKSTEP_ASSIGN_OR_RETURN(const auto reduced,
                                  worker.strategy->Across([&](Cross& cross) {
                                    return cross.ReduceTo(reduce, mine, target);
                                  }));
        return ResultsOf(reduced);
      },
      FormOf(op.at("value"), worker));
}

absl::StatusOr<Results> BatchReduceTo(const Json& op, StrategyWorker& worker) {
  const ReduceOp reduce = OpOf(op);
  std::vector<strategy::ReducePair> pairs;
  for (const Json& pair : op.at("pairs")) {
    std::vector<Leaf> leaves;
    const PerReplica<Node> nodes_in = worker.Nodes(pair.at("value"));
    for (const Node& node : nodes_in.local()) {
      leaves.push_back(node.leaf);
    }
    pairs.push_back(
        {PerReplica<Leaf>(std::move(leaves), worker.strategy->first_replica()),
         TargetOf(pair.at("destination"), worker)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto reduced, worker.strategy->Across([&](Cross& cross) {
        return cross.BatchReduceTo(reduce, pairs, PackingOf(op));
      }));
  // A list of values, each on its own devices.
  const size_t parts = static_cast<size_t>(worker.strategy->local_replicas());
  Results results;
  for (size_t i = 0; i < parts; ++i) {
    Json list = Json::array();
    for (const auto& value : reduced) {
      list.push_back(Canonical(value.At(value.size() == 1 ? 0 : i)));
    }
    results.push_back({{"list", list}});
  }
  return results;
}

absl::StatusOr<Results> BroadcastTo(const Json& op, StrategyWorker& worker) {
  const Node node = ReadNode(op.at("value"), worker.SeatOf(0));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto sent, worker.strategy->Across([&](Cross& cross) {
        return cross.BroadcastTo(std::get<Value>(node.leaf),
                                 TargetOf(op.at("destination"), worker));
      }));
  Results results;
  for (size_t i = 0; i < sent.size(); ++i) {
    results.push_back(Canonical(Leaf(sent.At(i))));
  }
  return results;
}

}  // namespace lockstep::golden
