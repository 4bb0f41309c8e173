#include "strategy/cross.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/element_type.h"

namespace lockstep::strategy {
namespace {

using Form = Distributed::Form;

// value / count, in the type of the value: the quotient of integers is computed
// in float64 and rounded towards zero.
Value ShareOf(const Value& value, int count) {
  // Not divided: float64 would round int64 numbers above 2^53.
  if (count == 1) return value;
  if (!IsInteger(value.type())) return Mean(value, count);
  return VisitInteger(value.type(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> share = value.Elements<T>();
    for (T& each : share) {
      each = static_cast<T>(static_cast<double>(each) / count);
    }
    return Value::Of<T>(value.type(), value.shape(), share);
  });
}

// Labels a value with the variable that it is reduced for.
Distributed For(const Target& target, Distributed value) {
  if (const auto* variable = std::get_if<Variable>(&target)) {
    value.label = CallOf("ReduceTo", variable->name());
  }
  return value;
}

bool IsMirroredKind(Kind kind) {
  return kind != Kind::kDefault && !HasOneCopy(kind);
}

}  // namespace

absl::Status Cross::CheckOwner(const Variable& variable) const {
  return engine_.variables().CheckOwner(variable);
}

absl::Status Cross::CheckUpdate(const Variable& variable) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  return engine_.variables().CheckNotServed(variable);
}

absl::StatusOr<Placement> Cross::PlacementOf(const Target& target) const {
  if (const auto* variable = std::get_if<Variable>(&target)) {
    LOCKSTEP_RETURN_IF_ERROR(CheckOwner(*variable));
    return variable->placement();
  }
  const Placement& all = engine_.worker_devices();
  const auto* placement = std::get_if<Placement>(&target);
  // EveryReplica is the alternative that is left.
  if (placement == nullptr) return all;
  const auto known = [&](const std::string& device) {
    return std::count(all.devices.begin(), all.devices.end(), device) > 0;
  };
  const bool one =
      placement->devices.size() == 1 && known(placement->devices[0]);
  if (one || *placement == all ||
      *placement == engine_.variables().parameter_devices()) {
    return *placement;
  }
  return absl::InvalidArgumentError(
      "a placement must be all devices of the strategy, one of them, or that "
      "of a variable");
}

absl::Status Cross::CheckPlacement(const Placement& placement) const {
  if (engine_.kind() == Kind::kDefault) return absl::OkStatus();
  return PlacementOf(placement).status();
}

absl::StatusOr<AtVariable<Leaf>> Cross::ReduceLeafTo(
    ReduceOp op, Distributed value, const Target& target,
    const CommunicationOptions& options) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Placement placement, PlacementOf(target));
  const Distributed labeled = For(target, std::move(value));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<Leaf> reduced,
      engine_.group().Reduce(op, Toward::kPlace, {&labeled, 1}, options));
  return AtVariable<Leaf>(std::move(placement), std::move(reduced[0]));
}

absl::StatusOr<std::vector<AtVariable<Leaf>>> Cross::BatchReduceTo(
    ReduceOp op, absl::Span<const ReducePair> pairs,
    const CommunicationOptions& options) {
  std::vector<Distributed> values;
  std::vector<Placement> placements;
  bool together = true;
  for (const ReducePair& pair : pairs) {
    values.push_back(For(pair.target, ToDistributed(pair.value)));
    LOCKSTEP_ASSIGN_OR_RETURN(placements.emplace_back(),
                              PlacementOf(pair.target));
    together = together && placements.back() == engine_.worker_devices();
  }
  std::vector<Leaf> reduced;
  // TensorFlow packs a batch only if all targets are the devices of the values.
  if (together) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        reduced, engine_.group().Reduce(op, Toward::kAll, values, options));
  } else {
    // One call for each value: those with other targets are not packed
    // together, but refused together.
    LOCKSTEP_RETURN_IF_ERROR(engine_.group().CheckBatch(values));
    // Still Toward::kAll: under kMirrored with SumOrder::kRing, the sums of a
    // batch are taken around a ring whatever the targets, those of ReduceTo()
    // are not.
    // The first call names all: workers whose batches differ must learn it
    // before any has a result.
    std::string batch = absl::StrCat("a batch of ", values.size(), ":");
    for (const Distributed& value : values) {
      absl::StrAppend(&batch, " ", value.label);
    }
    values[0].label = std::move(batch);
    for (const Distributed& value : values) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const std::vector<Leaf> one,
          engine_.group().Reduce(op, Toward::kAll, {&value, 1}, options));
      reduced.push_back(one[0]);
    }
  }
  std::vector<AtVariable<Leaf>> results;
  for (size_t i = 0; i < pairs.size(); ++i) {
    results.emplace_back(std::move(placements[i]), std::move(reduced[i]));
  }
  return results;
}

absl::StatusOr<std::vector<Leaf>> Cross::AllReduce(
    ReduceOp op, absl::Span<const Distributed> values,
    const CommunicationOptions& options) {
  return engine_.group().Reduce(op, Toward::kAll, values, options);
}

absl::StatusOr<Value> Cross::ReduceAlong(ReduceOp op, const Distributed& value,
                                         absl::Span<const int64_t> axes) const {
  return engine_.group().ReduceAlong(op, value, axes);
}

absl::StatusOr<Leaf> Cross::GatherAlong(
    const Distributed& value, int64_t axis,
    const CommunicationOptions& options) const {
  return engine_.group().Gather(value, axis, options);
}

absl::StatusOr<Value> Cross::Reduce(ReduceOp op, const Variable& variable) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  const VariableStore& store = engine_.variables();
  Distributed value;
  value.label = CallOf("Read", variable.name());
  for (size_t i = 0; i < store.CountOfCopies(variable); ++i) {
    value.local.emplace_back(store.ReadCopy(variable, i));
  }
  if (store.IsOnRead(variable) && store.IsForeign(variable)) {
    LOCKSTEP_RETURN_IF_ERROR(store.CheckLocal(variable));
    std::vector<Value> copies;
    for (Leaf& copy : value.local) {
      copies.push_back(std::get<Value>(std::move(copy)));
    }
    return lockstep::Reduce(op, SumOrder::kRank, copies);
  }
  if (store.IsOnRead(variable)) {
    value.form = Form::kPerReplica;
  } else {
    const bool one = store.IsPlain(variable) || HasOneCopy(engine_.kind());
    // As in TensorFlow the mean of a mirrored variable is its value, and its
    // sum is refused.
    value.form = one ? Form::kPlain : Form::kMirrored;
    value.local.resize(1);
  }
  return ReduceAlong(op, value, {});
}

absl::StatusOr<AtVariable<Value>> Cross::BroadcastTo(const Value& value,
                                                     const Target& target) {
  if (engine_.kind() == Kind::kDefault) {
    return absl::UnimplementedError(
        "the default strategy has no devices to broadcast to");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Placement placement, PlacementOf(target));
  return AtVariable<Value>(std::move(placement), value);
}

absl::StatusOr<Value> Cross::Read(const Variable& variable) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  const VariableStore& store = engine_.variables();
  // With kOnlyFirstReplica each worker reads its own first copy, as in
  // TensorFlow, so workers may read different values.
  if (!store.IsOnRead(variable) ||
      variable.aggregation() == Aggregation::kOnlyFirstReplica) {
    return store.ReadCopy(variable, 0);
  }
  if (variable.aggregation() == Aggregation::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variable.name(),
                     "\" is kOnRead without an aggregation, so its copies have "
                     "no common value; create it with one, or read it in a "
                     "replica"));
  }
  return Reduce(variable.aggregation() == Aggregation::kSum ? ReduceOp::kSum
                                                            : ReduceOp::kMean,
                variable);
}

absl::Status Cross::WriteAll(Assignment how, const Variable& variable,
                             const Distributed& value) {
  VariableStore& store = engine_.variables();
  const size_t copies = store.CountOfCopies(variable);
  // More components than copies are not refused: under kCentral the single copy
  // takes the first.
  const bool each = value.form == Form::kPerReplica || value.local.size() > 1;
  if (each && value.local.size() < copies) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(), "\" has ", copies,
        " copies, but the value that is written to them has ",
        value.local.size(), " components; give one for each copy"));
  }
  for (const bool write : {false, true}) {  // a call that fails writes nothing
    for (size_t i = 0; i < copies; ++i) {
      const Leaf& leaf = value.local[each ? i : 0];
      const Value* dense = std::get_if<Value>(&leaf);
      if (dense == nullptr) {
        return absl::InvalidArgumentError(
            "a variable must be written with a dense value; use Scatter()");
      }
      LOCKSTEP_RETURN_IF_ERROR(write ? store.Write(variable, i, how, *dense)
                                     : store.CheckWrite(variable, *dense));
    }
  }
  return absl::OkStatus();
}

absl::Status Cross::Write(Assignment how, const Variable& variable,
                          const Distributed& value) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  const VariableStore& store = engine_.variables();
  if (!store.IsOnRead(variable)) return WriteAll(how, variable, value);
  LOCKSTEP_RETURN_IF_ERROR(store.CheckLocal(variable));
  if (value.form == Form::kPerReplica) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(),
        "\" is kOnRead; reduce the values of the replicas before writing it "
        "across them, or write it in a replica"));
  }
  if (variable.aggregation() != Aggregation::kSum) {
    return WriteAll(how, variable, value);
  }
  // TensorFlow's rule; without it each copy would add the value, and the sum
  // would change by replicas() times as much.
  if (how != Assignment::kAssign) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(),
        "\" is the sum of its copies; add to it in one replica, or assign the "
        "new sum"));
  }
  const Value* dense = std::get_if<Value>(&value.local[0]);
  if (dense == nullptr) return WriteAll(how, variable, value);  // refuses
  // A checkpoint holds the sum that Read() returns; when it is restored, the
  // shares add up to that sum. Integers lose the remainder, as in TensorFlow.
  const int copies = store.IsForeign(variable)
                         ? static_cast<int>(store.CountOfCopies(variable))
                         : replicas();
  return WriteAll(how, variable, ToDistributed(ShareOf(*dense, copies)));
}

absl::Status Cross::WriteAggregated(Assignment how, const Variable& variable,
                                    Distributed value) {
  switch (variable.aggregation()) {
    case Aggregation::kNone:
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name(),
          "\" has no aggregation, so the values of several replicas cannot be "
          "written to it; create it with one"));
    case Aggregation::kOnlyFirstReplica:
      LOCKSTEP_RETURN_IF_ERROR(engine_.group().CheckComponents(value));
      // The first replica of each worker: nothing is exchanged, as in
      // TensorFlow, so the copies of different workers may drift apart.
      return WriteAll(how, variable,
                      {Distributed::Form::kPlain, {value.local[0]}});
    case Aggregation::kSum:
    case Aggregation::kMean: {
      const ReduceOp op = variable.aggregation() == Aggregation::kSum
                              ? ReduceOp::kSum
                              : ReduceOp::kMean;
      value.label = CallOf(how, variable);
      LOCKSTEP_ASSIGN_OR_RETURN(
          const std::vector<Leaf> reduced,
          engine_.group().Reduce(op, Toward::kPlace, {&value, 1}));
      return WriteAll(how, variable, {Distributed::Form::kPlain, {reduced[0]}});
    }
  }
  return absl::InternalError("unknown aggregation");
}

absl::Status Cross::ScatterAll(ScatterOp op, const Variable& variable,
                               const PerReplica<Slices>& rows) {
  VariableStore& store = engine_.variables();
  std::vector<Slices> turns = {rows.At(0)};
  if (HasOneCopy(engine_.kind())) {
    // A single copy takes the rows of each replica in turn: TensorFlow's
    // CentralStorageStrategy aggregates no scattered rows.
    turns.assign(rows.local().begin(), rows.local().end());
  } else if (variable.aggregation() != Aggregation::kOnlyFirstReplica) {
    const ReduceOp reduce = variable.aggregation() == Aggregation::kMean
                                ? ReduceOp::kMean
                                : ReduceOp::kSum;
    Distributed value = ToDistributed(rows);
    value.label = CallOf(op, variable);
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<Leaf> joined,
        engine_.group().Reduce(reduce, Toward::kPlace, {&value, 1}));
    turns = {std::get<Slices>(joined[0])};
  }
  for (const bool write : {false, true}) {  // a call that fails writes nothing
    for (size_t i = 0; i < store.CountOfCopies(variable); ++i) {
      for (const Slices& turn : turns) {
        LOCKSTEP_RETURN_IF_ERROR(
            write ? store.WriteRows(variable, i, op, turn)
                  : store.CheckWriteRows(variable, i, op, turn));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Variable> Cross::Create(const VariableOptions& options) {
  // Before the exchange: worker 0's initializer does not run for options that
  // are refused.
  LOCKSTEP_RETURN_IF_ERROR(engine_.variables().Check(options));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Value initial,
      engine_.group().FromFirstWorker(CallOf(options), options.initializer));
  return engine_.variables().Make(options, std::move(initial));
}

absl::StatusOr<Placement> Cross::NonSlotPlacement(
    absl::Span<const Variable> variables) const {
  if (variables.empty()) {
    return absl::InvalidArgumentError(
        "the placement of state for no variables is unknown; name some");
  }
  for (const Variable& variable : variables) {
    LOCKSTEP_RETURN_IF_ERROR(CheckOwner(variable));
  }
  if (IsMirroredKind(engine_.kind())) return engine_.worker_devices();
  // By the name, because the order of `variables` may differ between workers.
  return std::min_element(variables.begin(), variables.end(),
                          [](const Variable& a, const Variable& b) {
                            return a.name() < b.name();
                          })
      ->placement();
}

}  // namespace lockstep::strategy
