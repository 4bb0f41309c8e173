#include "strategy/replica.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/count_text.h"
#include "strategy/cross.h"

namespace lockstep::strategy {
namespace {

// True if values of several replicas are added up for the variable, which waits
// for all workers.
bool Reduces(const Variable& variable) {
  return variable.aggregation() == Aggregation::kSum ||
         variable.aggregation() == Aggregation::kMean;
}

}  // namespace

absl::Status CheckSameCall(const PerReplica<std::string>& calls) {
  for (size_t r = 1; r < calls.local().size(); ++r) {
    if (calls.At(r) == calls.At(0)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "local replica 0 calls ", calls.At(0), ", local replica ", r, " ",
        calls.At(r),
        "; all replicas must make the same calls in the same order"));
  }
  return absl::OkStatus();
}

int Replica::id() const {
  return engine_.group().first_replica() + static_cast<int>(local_);
}

int Replica::count() const { return engine_.group().replicas(); }

const std::string& Replica::device() const {
  return engine_.worker_devices().devices[local_];
}

bool Replica::IsOfDefaultStrategy() const {
  return &engine_ == &DefaultEngine();
}

absl::Status Replica::MeetAll(const std::type_info& purpose, void* brought,
                              Together together) {
  if (CurrentReplica() != this) {
    return absl::FailedPreconditionError(
        "a replica may call its context in its own function alone, neither in "
        "that of a merge nor in another thread");
  }
  return meeting_.Come(local_, purpose, brought,
                       [&](absl::Span<void* const> all) {
                         engine_.AcrossFromReplica([&] {
                           Cross cross(engine_);
                           together(cross, all);
                         });
                       });
}

absl::Status Replica::CheckAlike(const PerReplica<Access>& accesses) const {
  const Access& first = accesses.At(0);
  bool waits = false;
  for (const Access& access : accesses.local()) waits = waits || access.waits;
  for (size_t r = 1; r < accesses.local().size(); ++r) {
    const Access& other = accesses.At(r);
    if (other.call == first.call && other.variable == first.variable) continue;
    absl::Status differ = absl::InvalidArgumentError(absl::StrCat(
        "local replica 0 calls ", first.call, ", local replica ", r, " ",
        other.call, other.call == first.call ? " of another variable" : "",
        "; all replicas must make the same calls in the same order"));
    if (!waits) return differ;
    return engine_.group().TellIfRefused(first.call, std::move(differ), {});
  }
  for (const Access& access : accesses.local()) {
    if (access.refused.ok()) continue;
    if (!waits) return access.refused;
    return engine_.group().TellIfRefused(first.call, access.refused, {});
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Replica::Read(const Variable& variable) const {
  const VariableStore& store = engine_.variables();
  if (!store.Owns(variable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(), "\" is another strategy's"));
  }
  if (store.IsForeign(variable)) return Cross(engine_).Read(variable);
  return store.ReadCopy(variable, store.CopyOfReplica(variable, local_));
}

absl::StatusOr<Value> Replica::ReadAggregated(const Variable& variable) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Value mine, Read(variable));
  const bool together =
      engine_.variables().IsOnRead(variable) && Reduces(variable);
  return Merge(
      [&](Cross& cross, const PerReplica<Access>& accesses,
          const PerReplica<Value>& all) -> absl::StatusOr<Value> {
        LOCKSTEP_RETURN_IF_ERROR(CheckAlike(accesses));
        if (!together) return cross.Read(variable);
        // TensorFlow forces synchronization in a replica by an all-reduce: with
        // SumOrder::kRing its sum goes around a ring, that of Cross::Read()
        // does not.
        Distributed value = ToDistributed(all);
        value.label = accesses.At(0).call;
        LOCKSTEP_ASSIGN_OR_RETURN(
            std::vector<Leaf> reduced,
            cross.AllReduce(variable.aggregation() == Aggregation::kSum
                                ? ReduceOp::kSum
                                : ReduceOp::kMean,
                            absl::MakeConstSpan(&value, 1)));
        return std::get<Value>(std::move(reduced[0]));
      },
      Access{CallOf("ReadAggregated", variable.name()), variable, together},
      mine);
}

absl::Status Replica::Write(Assignment how, const Variable& variable,
                            const Value& value) {
  VariableStore& store = engine_.variables();
  LOCKSTEP_RETURN_IF_ERROR(store.CheckOwner(variable));
  const absl::Status fits = store.CheckWrite(variable, value);
  if (store.IsForeign(variable)) {
    LOCKSTEP_RETURN_IF_ERROR(fits);
    return Cross(engine_).Write(how, variable, ToDistributed(value));
  }
  // Without an aggregation a replica writes its own copy alone, as in
  // TensorFlow 2.21. A single copy belongs to no replica, so AssignAggregated()
  // refuses that.
  const bool alone = store.IsPlain(variable) || store.IsOnRead(variable) ||
                     (variable.aggregation() == Aggregation::kNone &&
                      !HasOneCopy(engine_.kind()));
  if (alone) {
    LOCKSTEP_RETURN_IF_ERROR(fits);
    return store.Write(variable, store.CopyOfReplica(variable, local_), how,
                       value);
  }
  return Merge(
      [&](Cross& cross, const PerReplica<Access>& accesses,
          const PerReplica<Value>& all) -> absl::Status {
        LOCKSTEP_RETURN_IF_ERROR(CheckAlike(accesses));
        return cross.AssignAggregated(how, variable, all);
      },
      Access{CallOf(how, variable), variable, Reduces(variable), fits}, value);
}

absl::Status Replica::Assign(const Variable& variable, const Value& value) {
  return Write(Assignment::kAssign, variable, value);
}

absl::Status Replica::AssignAdd(const Variable& variable, const Value& value) {
  return Write(Assignment::kAdd, variable, value);
}

absl::Status Replica::AssignSub(const Variable& variable, const Value& value) {
  return Write(Assignment::kSubtract, variable, value);
}

absl::Status Replica::Scatter(ScatterOp op, const Variable& variable,
                              const Slices& rows) {
  VariableStore& store = engine_.variables();
  LOCKSTEP_RETURN_IF_ERROR(store.CheckOwner(variable));
  if (store.IsPlain(variable)) {
    return store.WriteRows(variable, 0, op, rows);
  }
  if (store.IsOnRead(variable)) {
    return absl::UnimplementedError(
        absl::StrCat("variable \"", variable.name(),
                     "\" is kOnRead, and cannot be scattered to"));
  }
  if (store.IsForeign(variable)) {
    return Cross(engine_).ScatterAll(op, variable,
                                     PerReplica<Slices>({rows}, 0));
  }
  // The rules below are TensorFlow's for each kind: with kSum and kMean the
  // rows are joined first, which only the arithmetic operations allow; a single
  // copy takes all rows in turn, with every operation.
  const bool central = HasOneCopy(engine_.kind());
  const bool reduces = Reduces(variable);
  const bool chooses = op == ScatterOp::kMin || op == ScatterOp::kMax ||
                       op == ScatterOp::kUpdate;
  if (reduces && chooses && !central) {
    return absl::UnimplementedError(
        absl::StrCat("variable \"", variable.name(),
                     "\": minimum, maximum and update of rows need kNone or "
                     "kOnlyFirstReplica"));
  }
  if (!central && variable.aggregation() == Aggregation::kNone) {
    return store.WriteRows(variable, store.CopyOfReplica(variable, local_), op,
                           rows);
  }
  return Merge(
      [&](Cross& cross, const PerReplica<Access>& accesses,
          const PerReplica<Slices>& all) -> absl::Status {
        LOCKSTEP_RETURN_IF_ERROR(CheckAlike(accesses));
        return cross.ScatterAll(op, variable, all);
      },
      Access{CallOf(op, variable), variable, reduces}, rows);
}

absl::StatusOr<std::vector<Leaf>> Replica::AllReduce(
    ReduceOp op, std::vector<Leaf> values,
    const CommunicationOptions& options) {
  std::string call =
      absl::StrCat("AllReduce ", op == ReduceOp::kSum ? "SUM" : "MEAN", " of ",
                   CountText(static_cast<int64_t>(values.size()), "value"));
  return Merge(
      [&](Cross& cross, const PerReplica<std::string>& calls,
          const PerReplica<std::vector<Leaf>>& all)
          -> absl::StatusOr<std::vector<Leaf>> {
        LOCKSTEP_RETURN_IF_ERROR(engine_.group().TellIfRefused(
            "AllReduce()", CheckSameCall(calls), options));
        // From value j of replica i to replica i of value j.
        std::vector<Distributed> reduced(all.At(0).size());
        for (const std::vector<Leaf>& of_replica : all.local()) {
          for (size_t i = 0; i < reduced.size(); ++i) {
            reduced[i].form = Distributed::Form::kPerReplica;
            reduced[i].local.push_back(of_replica[i]);
          }
        }
        return cross.AllReduce(op, absl::MakeConstSpan(reduced), options);
      },
      std::move(call), std::move(values));
}

absl::StatusOr<Value> Replica::AllReduce(ReduceOp op, const Value& value,
                                         const CommunicationOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Leaf> reduced,
                            AllReduce(op, std::vector<Leaf>{value}, options));
  return std::get<Value>(std::move(reduced[0]));
}

absl::StatusOr<Value> Replica::AllGather(const Value& value, int64_t axis,
                                         const CommunicationOptions& options) {
  return Merge(
      [&](Cross& cross, const PerReplica<std::string>& calls,
          const PerReplica<Value>& all) -> absl::StatusOr<Value> {
        LOCKSTEP_RETURN_IF_ERROR(engine_.group().TellIfRefused(
            "AllGather()", CheckSameCall(calls), options));
        LOCKSTEP_ASSIGN_OR_RETURN(Leaf joined,
                                  cross.Gather(all, axis, options));
        return std::get<Value>(std::move(joined));
      },
      absl::StrCat("AllGather along axis ", axis), value);
}

absl::StatusOr<Variable> Replica::Create(const VariableOptions& options) {
  return Merge(
      [&](Cross& cross,
          const PerReplica<std::string>& calls) -> absl::StatusOr<Variable> {
        // The initializer is a function, which cannot be compared: that of the
        // first replica counts.
        LOCKSTEP_RETURN_IF_ERROR(engine_.group().TellIfRefused(
            "Create()", CheckSameCall(calls), {}));
        return cross.Create(options);
      },
      CallOf(options));
}

}  // namespace lockstep::strategy
