// run and merge_call of strategy_values.

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "tests/golden/strategy/strategy_values_replay.h"

namespace lockstep::golden {
namespace {

using strategy::Cross;
using strategy::PerReplica;
using strategy::Replica;
using Outcome = absl::StatusOr<Node>;

absl::Status Raised() {
  return absl::InvalidArgumentError("raised by the function");
}

const Value& ValueOf(const Node& node) {
  const Value* value = std::get_if<Value>(&node.leaf);
  if (node.kind != Node::Kind::kLeaf || value == nullptr) {
    throw BadTrace("the function needs a tensor");
  }
  return *value;
}

Value With(Arithmetic op, Value a, const Value& b) {
  if (a.type() != b.type() || a.shape() != b.shape()) {
    throw BadTrace("the function needs tensors of one shape");
  }
  Combine(a.type(), op, a.size(), a.mutable_bytes().data(), b.bytes().data());
  return a;
}

// `number` in every element of a value like `like`.
Value Filled(const Value& like, int number) {
  const Json tensor = {{"dtype", std::string(NameOf(like.type()))},
                       {"shape", like.shape()},
                       {"data", std::vector<int>(like.size(), number)}};
  return ReadValue(tensor);
}

Node Int32(int number) {
  return Node::Of(Value::Of<int32_t>(ElementType::kInt32, {}, {number}));
}

Outcome Double(Replica& replica, const StrategyWorker& worker, const Node& x) {
  Value value;
  if (x.kind == Node::Kind::kVariable) {
    LOCKSTEP_ASSIGN_OR_RETURN(value, replica.Read(worker.VariableOf(x.other)));
  } else {
    value = ValueOf(x);
  }
  return Node::Of(With(Arithmetic::kAdd, value, value));
}

Node AddId(Replica& replica, const Node& x) {
  const Value& value = ValueOf(x);
  return Node::Of(With(Arithmetic::kAdd, value, Filled(value, replica.id())));
}

Node Structure(const Node& x) {
  const Value& v = ValueOf(x);
  const Node difference = Node::Of(With(Arithmetic::kSubtract, v, v));
  const Node list =
      Node::Of(Node::Kind::kList,
               {{"0", Node::Of(With(Arithmetic::kMultiply, v, v))},
                {"1", Node::Of(Node::Kind::kTuple, {{"0", difference}})}});
  return Node::Of(Node::Kind::kDict,
                  {{"a", Node::Of(With(Arithmetic::kAdd, v, v))}, {"b", list}});
}

Outcome AllReduceTwice(Replica& replica, const Node& x) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Value once,
                            replica.AllReduce(ReduceOp::kSum, ValueOf(x)));
  LOCKSTEP_ASSIGN_OR_RETURN(Value twice,
                            replica.AllReduce(ReduceOp::kSum, once));
  return Node::Of(std::move(twice));
}

// The functions that fail. `strategy` is what a function could have captured.
Outcome Fail(const std::string& fn, Replica& replica, StrategyWorker& worker,
             const Node& x) {
  strategy::Strategy& strategy = *worker.strategy;
  const auto raise = [](Replica&) { return Raised(); };
  absl::Status status;
  if (fn == "raise_in_last") {
    if (replica.id() == replica.count() - 1) status = Raised();
  } else if (fn == "raise_in_merge") {
    status = replica.Merge([](Cross&) { return Raised(); });
  } else if (fn == "raise_in_run_in_merge") {
    status = replica.Merge([&](Cross& cross) {
      return cross.Run([](Replica& inner) {
        return inner.id() == inner.count() - 1 ? Raised() : absl::OkStatus();
      });
    });
  } else if (fn == "raise_in_merge_in_run_in_merge") {
    status = replica.Merge([](Cross& cross) {
      return cross.Run([](Replica& inner) {
        return inner.Merge([](Cross&) { return Raised(); });
      });
    });
  } else if (fn == "merge_wrong_context") {
    status = replica.Merge([&](Cross&) {
      return replica.Merge([](Cross&) { return absl::OkStatus(); });
    });
  } else if (fn == "run_in_replica") {
    status = strategy.Run(raise);
  } else if (fn == "scope_in_replica") {
    status = strategy.Across([](Cross&) { return absl::OkStatus(); });
  } else if (fn == "reduce_in_replica") {
    status = strategy.Reduce(ReduceOp::kSum, x.leaf).status();
  } else if (fn == "gather_in_replica") {
    status = strategy.Gather(x.leaf, 0).status();
  } else {
    throw BadTrace(absl::StrCat("unknown function \"", fn, "\""));
  }
  if (!status.ok()) return status;
  return x;
}

Outcome RunOne(const std::string& fn, Replica& replica, StrategyWorker& worker,
               const std::vector<Node>& x) {
  if (fn == "double") return Double(replica, worker, x.at(0));
  if (fn == "identity") return x.at(0);
  if (fn == "add") {
    return Node::Of(With(Arithmetic::kAdd, ValueOf(x.at(0)), ValueOf(x.at(1))));
  }
  if (fn == "add_id") return AddId(replica, x.at(0));
  if (fn == "id_and_count") {
    return Node::Of(Node::Kind::kTuple, {{"0", Int32(replica.id())},
                                         {"1", Int32(replica.count())}});
  }
  if (fn == "structure") return Structure(x.at(0));
  if (fn == "none") return Node{};
  if (fn == "all_reduce_twice") return AllReduceTwice(replica, x.at(0));
  return Fail(fn, replica, worker, x.at(0));
}

Results ResultsOf(const PerReplica<Node>& nodes) {
  Results results;
  for (const Node& node : nodes.local()) results.push_back(Canonical(node));
  return results;
}

// The values of the replicas as the product's reductions take them.
PerReplica<Leaf> LeavesOf(const PerReplica<Node>& nodes) {
  std::vector<Leaf> leaves;
  for (const Node& node : nodes.local()) leaves.push_back(node.leaf);
  return {std::move(leaves), nodes.first_replica()};
}

Outcome SumLocals(const PerReplica<Node>& nodes) {
  std::vector<Value> values;
  for (const Node& node : nodes.local()) values.push_back(ValueOf(node));
  LOCKSTEP_ASSIGN_OR_RETURN(Value sum,
                            Reduce(ReduceOp::kSum, SumOrder::kRank, values));
  return Node::Of(std::move(sum));
}

Outcome ReduceIn(Cross& cross, ReduceOp op, const PerReplica<Node>& nodes) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto reduced,
      cross.ReduceTo(op, LeavesOf(nodes), strategy::EveryReplica{}));
  return Node::Of(reduced.At(0));
}

// One result goes to all replicas.
absl::StatusOr<PerReplica<Node>> ToAll(const PerReplica<Node>& nodes,
                                       const Outcome& result) {
  if (!result.ok()) return result.status();
  return PerReplica<Node>(std::vector<Node>(nodes.local().size(), *result),
                          nodes.first_replica());
}

absl::StatusOr<PerReplica<Node>> StructureInMerge(
    Cross& cross, const PerReplica<Node>& nodes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Node sum,
                            ReduceIn(cross, ReduceOp::kSum, nodes));
  LOCKSTEP_ASSIGN_OR_RETURN(const Node locals, SumLocals(nodes));
  std::vector<Node> made;
  for (const Node& mine : nodes.local()) {
    const Node list = Node::Of(Node::Kind::kList, {{"0", mine}, {"1", locals}});
    made.push_back(Node::Of(Node::Kind::kDict, {{"l", list}, {"m", sum}}));
  }
  return PerReplica<Node>(std::move(made), nodes.first_replica());
}

absl::StatusOr<PerReplica<Node>> MergeOne(const std::string& fn, Cross& cross,
                                          const PerReplica<Node>& nodes) {
  if (fn == "sum_locals") return ToAll(nodes, SumLocals(nodes));
  if (fn == "pass") return nodes;
  if (fn == "reduce_sum") {
    return ToAll(nodes, ReduceIn(cross, ReduceOp::kSum, nodes));
  }
  if (fn == "reduce_mean") {
    return ToAll(nodes, ReduceIn(cross, ReduceOp::kMean, nodes));
  }
  if (fn == "structure") return StructureInMerge(cross, nodes);
  if (fn == "nested_run") {
    return cross.Run(
        [](Replica& inner, const Node& x) {
          return Guarded([&]() -> Outcome { return AddId(inner, x); });
        },
        nodes);
  }
  if (fn == "none") return ToAll(nodes, Node{});
  throw BadTrace(absl::StrCat("unknown merge function \"", fn, "\""));
}

}  // namespace

absl::StatusOr<Results> RunFunction(const Json& op, StrategyWorker& worker) {
  std::vector<Json> in = op.at("args");
  if (op.contains("kwargs")) {
    for (const auto& [key, value] : op.at("kwargs").at("dict").items()) {
      in.push_back(value);
    }
  }
  std::vector<std::vector<Node>> args(
      static_cast<size_t>(worker.strategy->local_replicas()));
  for (const Json& each : in) {
    const PerReplica<Node> nodes = worker.Nodes(each);
    for (size_t r = 0; r < args.size(); ++r) args[r].push_back(nodes.At(r));
  }
  const std::string fn = op.at("fn");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto results,
      worker.strategy->Run(
          [&](Replica& replica, const std::vector<Node>& mine) {
            return Guarded([&] { return RunOne(fn, replica, worker, mine); });
          },
          PerReplica(std::move(args), worker.strategy->first_replica())));
  return ResultsOf(results);
}

absl::StatusOr<Results> MergeCall(const Json& op, StrategyWorker& worker) {
  const std::string fn = op.at("fn");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto results,
      worker.strategy->Run(
          [&](Replica& replica, const Node& mine) {
            return replica.Merge(
                [&](Cross& cross, const PerReplica<Node>& all) {
                  return Guarded([&] { return MergeOne(fn, cross, all); });
                },
                mine);
          },
          worker.Nodes(op.at("value"))));
  return ResultsOf(results);
}

}  // namespace lockstep::golden
