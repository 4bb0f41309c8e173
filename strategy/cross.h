#ifndef LOCKSTEP_STRATEGY_CROSS_H_
#define LOCKSTEP_STRATEGY_CROSS_H_

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "strategy/copy.h"
#include "strategy/engine.h"
#include "strategy/replica.h"
#include "strategy/results.h"
#include "strategy/values/distributed.h"

namespace lockstep::strategy {

// All devices that run replicas.
struct EveryReplica {};

// The destination of a reduced value. A Variable stands for its devices; its
// value does not change. A Placement must be NonSlotPlacement(), that of a
// variable, or one device.
using Target = std::variant<EveryReplica, Variable, Placement>;

// One of several values that are reduced together.
struct ReducePair {
  PerReplica<Leaf> value;
  Target target;
};

// Cross is the context of a function that runs once in each worker and acts
// across all replicas. The functions of all workers must make the same calls in
// the same order, for variables of the same names; calls that reduce or gather
// wait for all workers.
//
// A value that may be reduced is a Value, Slices or Leaf, or a PerReplica,
// Mirrored or AtVariable of one; ReplicaGroup says how each form counts.
//
// Threads: for the thread that runs the function.
// Errors:  kInvalidArgument for a variable or devices of another strategy;
//          those of Collective::Exchange() where workers wait for each other.
class Cross {
 public:
  explicit Cross(Engine& engine) : engine_(engine) {}
  Cross(const Cross&) = delete;
  Cross& operator=(const Cross&) = delete;

  int replicas() const { return engine_.group().replicas(); }
  int first_replica() const { return engine_.group().first_replica(); }

  // Calls fn(Replica&, component of each argument...) once for each replica of
  // this worker, all at the same time, in different threads; an argument that
  // is not wrapped goes to all. Returns a StatusOr<PerReplica<R>> if `fn`
  // returns an R or a StatusOr<R>, and a Status if it returns nothing or a
  // Status.
  //
  //   kInvalidArgument  a PerReplica lacks a component for some replica
  //   others            of `fn`: the first replica's error that is not the
  //                     consequence of another replica's
  template <class F, class... A>
  requires std::is_invocable_v < F&, Replica&, const Component<A>
  &... > auto Run(F fn, const A&... args);

  // Returns the sum or mean over all replicas, on the target's devices. The
  // mean of a Mirrored or AtVariable is that value itself, on its own devices,
  // except under kCentral.
  //
  // Errors: as ReplicaGroup::Reduce().
  template <class D>
  requires Reducible<D> absl::StatusOr<AtVariable<Component<D>>> ReduceTo(
      ReduceOp op, const D& value, const Target& target,
      const CommunicationOptions& options = {});

  // As ReduceTo(), for several values; the results are in the order of `pairs`.
  // The values travel together if all targets are the devices of the replicas;
  // otherwise each travels alone, and has the whole timeout of `options`.
  absl::StatusOr<std::vector<AtVariable<Leaf>>> BatchReduceTo(
      ReduceOp op, absl::Span<const ReducePair> pairs,
      const CommunicationOptions& options = {});

  // As ReduceTo() and BatchReduceTo(), with all replicas as the target.
  template <class D>
  requires Reducible<D> absl::StatusOr<Mirrored<Component<D>>> AllReduce(
      ReduceOp op, const D& value, const CommunicationOptions& options = {});
  absl::StatusOr<std::vector<Leaf>> AllReduce(
      ReduceOp op, absl::Span<const Distributed> values,
      const CommunicationOptions& options = {});

  // Returns the sum or mean over all replicas and, within each, over `axes`.
  //
  // Errors: as ReplicaGroup::ReduceAlong().
  template <class D>
  requires Reducible<D> absl::StatusOr<Value> Reduce(
      ReduceOp op, const D& value, absl::Span<const int64_t> axes = {}) {
    return ReduceAlong(op, ToDistributed(value), axes);
  }
  // A kOnWrite variable counts as a mirrored value, a kOnRead one as a value of
  // each replica, and one with a single copy as a plain value.
  absl::StatusOr<Value> Reduce(ReduceOp op, const Variable& variable);

  // Returns the values of all replicas joined along an axis.
  //
  // Errors: as ReplicaGroup::Gather().
  template <class D>
  requires Reducible<D> absl::StatusOr<Leaf> Gather(
      const D& value, int64_t axis, const CommunicationOptions& options = {}) {
    return GatherAlong(ToDistributed(value), axis, options);
  }

  // Returns `value` with a copy on each device of the target. Nothing is sent
  // to other workers: each has its own value.
  //
  //   kUnimplemented  the default strategy
  absl::StatusOr<AtVariable<Value>> BroadcastTo(const Value& value,
                                                const Target& target);

  // Calls fn(Copy&, component of each argument...) for each copy of the
  // variable in this worker, in their order: copy i gets component i. Returns a
  // StatusOr<AtVariable<R>>, or a Status. If `fn` fails, copies before it have
  // been updated.
  //
  //   kInvalidArgument  a wrapped argument with fewer components than copies
  //   others            of `fn`
  template <class F, class... A>
  requires std::is_invocable_v < F&, Copy&, const Component<A>
  &... > auto Update(const Variable& variable, F fn, const A&... args);

  // As Update(), for state that belongs to no single variable: calls
  // fn(Place&, component of each argument...) for each device of `placement`,
  // which must be as a Target.
  template <class F, class... A>
  requires std::is_invocable_v < F&, Place&, const Component<A>
  &... > auto UpdateNonSlot(const Placement& placement, F fn, const A&... args);

  // Returns the value of a variable. A kOnWrite variable: its first copy here.
  // kOnRead: the sum or mean of all copies of all workers, or, with
  // kOnlyFirstReplica, the first copy here.
  //
  //   kInvalidArgument  also: a kOnRead variable without aggregation
  absl::StatusOr<Value> Read(const Variable& variable);

  // Write all copies in this worker. `value` is plain or wrapped; a PerReplica
  // gives component i to copy i, and an AtVariable its copy i. The copies of a
  // kOnRead variable with kSum get a share each, value / replicas() (integers:
  // rounded towards zero), of an AtVariable that of its first copy.
  //
  //   kInvalidArgument  also: another type or shape; a PerReplica for a kOnRead
  //                     variable; adding to or subtracting from one with kSum
  template <class D>
  requires Reducible<D> absl::Status Assign(const Variable& variable,
                                            const D& value) {
    return Write(Assignment::kAssign, variable, ToCopies(value));
  }
  template <class D>
  requires Reducible<D> absl::Status AssignAdd(const Variable& variable,
                                               const D& value) {
    return Write(Assignment::kAdd, variable, ToCopies(value));
  }
  template <class D>
  requires Reducible<D> absl::Status AssignSub(const Variable& variable,
                                               const D& value) {
    return Write(Assignment::kSubtract, variable, ToCopies(value));
  }

  // Writes all copies with the aggregate of `value`, as Replica::Assign() does
  // with the values of the replicas.
  //
  //   kInvalidArgument  also: no aggregation
  template <class D>
  requires Reducible<D> absl::Status AssignAggregated(Assignment how,
                                                      const Variable& variable,
                                                      const D& value) {
    return WriteAggregated(how, variable, ToDistributed(value));
  }

  // Creates a variable with worker 0's initial value in all copies. All workers
  // must pass the same name, synchronization, aggregation and trainable.
  //
  // Errors: as VariableStore::Make(); those of the initializer.
  absl::StatusOr<Variable> Create(const VariableOptions& options);

  // Returns the placement of state that belongs to several variables, such as
  // Adam's powers of beta. Mirrored kinds: all devices; others: the placement
  // of the variable with the smallest name, which is equal in all workers.
  //
  //   kInvalidArgument  no variables
  absl::StatusOr<Placement> NonSlotPlacement(
      absl::Span<const Variable> variables) const;

 private:
  friend class Replica;
  friend class StepContext;

  absl::StatusOr<Placement> PlacementOf(const Target& target) const;
  absl::StatusOr<AtVariable<Leaf>> ReduceLeafTo(
      ReduceOp op, Distributed value, const Target& target,
      const CommunicationOptions& options) const;
  absl::StatusOr<Value> ReduceAlong(ReduceOp op, const Distributed& value,
                                    absl::Span<const int64_t> axes) const;
  absl::StatusOr<Leaf> GatherAlong(const Distributed& value, int64_t axis,
                                   const CommunicationOptions& options) const;
  absl::Status CheckOwner(const Variable& variable) const;
  // OK if the devices are those of this strategy or of its variables. The
  // default strategy takes any, because it may use all variables.
  absl::Status CheckPlacement(const Placement& placement) const;
  // OK if a program's function may write single copies of the variable.
  absl::Status CheckUpdate(const Variable& variable) const;
  absl::Status WriteAll(Assignment how, const Variable& variable,
                        const Distributed& value);
  absl::Status Write(Assignment how, const Variable& variable,
                     const Distributed& value);
  absl::Status WriteAggregated(Assignment how, const Variable& variable,
                               Distributed value);
  absl::Status ScatterAll(ScatterOp op, const Variable& variable,
                          const PerReplica<Slices>& rows);

  // OK if the value has a component for each of `count` places.
  template <class T>
  static absl::Status CheckComponents(const T& value, size_t count);
  // Calls fn(place, component...) for each place.
  template <class Context, class F, class... A>
  auto OnEach(
      const Placement& placement, F& fn,
      absl::FunctionRef<void(size_t, absl::FunctionRef<void(Context&)>)> enter,
      const A&... args);

  Engine& engine_;
};

template <class T>
absl::Status Cross::CheckComponents(const T& value, size_t count) {
  size_t components = count;
  // A Variable has a placement, too, and is passed whole.
  if constexpr (kIsWrapped<T> && requires { value.local(); }) {
    components = value.local().size();
  } else if constexpr (kIsWrapped<T> && requires { value.placement(); }) {
    // A single copy is that of each place.
    components =
        value.copies().size() == 1 ? value.size() : value.copies().size();
  }
  if (components >= count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "an argument has fewer components than there are places");
}

template <class F, class... A>
requires std::is_invocable_v < F&, Replica&, const Component<A>
&... > auto Cross::Run(F fn, const A&... args) {
  using Result = ResultOfCall<F, Replica&, const Component<A>&...>;
  using R = typename Result::Value;
  const auto count = static_cast<size_t>(engine_.group().local());
  absl::Status fits;
  (fits.Update(CheckComponents(args, count)), ...);
  if constexpr (std::is_void_v<R>) {
    if (!fits.ok()) return fits;
    return engine_.RunReplicas([&](Replica& replica) {
      return Call(fn, replica, ComponentOf(args, replica.local())...);
    });
  } else {
    using Wrapped = absl::StatusOr<PerReplica<R>>;
    std::vector<std::optional<R>> results(count);
    if (fits.ok()) {
      fits = engine_.RunReplicas([&](Replica& replica) -> absl::Status {
        auto result = Call(fn, replica, ComponentOf(args, replica.local())...);
        if (!result.ok()) return result.status();
        results[replica.local()] = *std::move(result);
        return absl::OkStatus();
      });
    }
    if (!fits.ok()) return Wrapped(std::move(fits));
    std::vector<R> local;
    for (std::optional<R>& result : results) {
      local.push_back(*std::move(result));
    }
    return Wrapped(PerReplica<R>(std::move(local), first_replica()));
  }
}

template <class D>
requires Reducible<D> absl::StatusOr<AtVariable<Component<D>>> Cross::ReduceTo(
    ReduceOp op, const D& value, const Target& target,
    const CommunicationOptions& options) {
  absl::StatusOr<AtVariable<Leaf>> reduced =
      ReduceLeafTo(op, ToDistributed(value), target, options);
  if (!reduced.ok()) return reduced.status();
  // As in TensorFlow: the value lies on all devices already.
  if (op == ReduceOp::kMean && !HasOneCopy(engine_.kind())) {
    if constexpr (std::is_same_v<D, Mirrored<Component<D>>>) {
      return AtVariable<Component<D>>(engine_.worker_devices(), value.value());
    } else if constexpr (std::is_same_v<D, AtVariable<Component<D>>>) {
      return value;
    }
  }
  return AtVariable<Component<D>>(reduced->placement(),
                                  FromLeaf<Component<D>>(reduced->At(0)));
}

template <class D>
requires Reducible<D> absl::StatusOr<Mirrored<Component<D>>> Cross::AllReduce(
    ReduceOp op, const D& value, const CommunicationOptions& options) {
  const Distributed distributed = ToDistributed(value);
  absl::StatusOr<std::vector<Leaf>> reduced =
      AllReduce(op, {&distributed, 1}, options);
  if (!reduced.ok()) return reduced.status();
  return Mirrored<Component<D>>(FromLeaf<Component<D>>((*reduced)[0]));
}

template <class Context, class F, class... A>
auto Cross::OnEach(
    const Placement& placement, F& fn,
    absl::FunctionRef<void(size_t, absl::FunctionRef<void(Context&)>)> enter,
    const A&... args) {
  using Result = ResultOfCall<F, Context&, const Component<A>&...>;
  using R = typename Result::Value;
  const size_t count = placement.devices.size();
  absl::Status status;
  (status.Update(CheckComponents(args, count)), ...);
  if constexpr (std::is_void_v<R>) {
    for (size_t i = 0; i < count && status.ok(); ++i) {
      enter(i, [&](Context& context) {
        status = Call(fn, context, ComponentOf(args, i)...);
      });
    }
    return status;
  } else {
    using Wrapped = absl::StatusOr<AtVariable<R>>;
    std::vector<R> results;
    for (size_t i = 0; i < count && status.ok(); ++i) {
      enter(i, [&](Context& context) {
        auto result = Call(fn, context, ComponentOf(args, i)...);
        status = result.status();
        if (result.ok()) results.push_back(*std::move(result));
      });
    }
    if (!status.ok()) return Wrapped(std::move(status));
    return Wrapped(AtVariable<R>(placement, std::move(results)));
  }
}

template <class F, class... A>
requires std::is_invocable_v < F&, Copy&, const Component<A>
&... > auto Cross::Update(const Variable& variable, F fn, const A&... args) {
  using Type = decltype(OnEach<Copy>(
      variable.placement(), fn, [](size_t, absl::FunctionRef<void(Copy&)>) {},
      args...));
  if (absl::Status may = CheckUpdate(variable); !may.ok()) {
    return Type(std::move(may));
  }
  return OnEach<Copy>(
      variable.placement(), fn,
      [&](size_t i, absl::FunctionRef<void(Copy&)> use) {
        Copy copy(engine_, variable, i);
        use(copy);
      },
      args...);
}

template <class F, class... A>
requires std::is_invocable_v < F&, Place&, const Component<A>
&... > auto Cross::UpdateNonSlot(const Placement& placement, F fn,
                                 const A&... args) {
  using Type = decltype(OnEach<Place>(
      placement, fn, [](size_t, absl::FunctionRef<void(Place&)>) {}, args...));
  if (absl::Status may = CheckPlacement(placement); !may.ok()) {
    return Type(std::move(may));
  }
  return OnEach<Place>(
      placement, fn,
      [&](size_t i, absl::FunctionRef<void(Place&)> use) {
        Place place(engine_, placement, i);
        use(place);
      },
      args...);
}

template <class F, class... A>
auto Replica::Update(const Variable& variable, F fn, A... mine) {
  return Merge(
      [&](Cross& cross, const PerReplica<Access>& accesses,
          const PerReplica<A>&... all) {
        using Type = decltype(cross.Update(variable, fn, all...));
        if (absl::Status alike = CheckAlike(accesses); !alike.ok()) {
          return Type(std::move(alike));
        }
        return cross.Update(variable, fn, all...);
      },
      Access{CallOf("Update", variable.name()), variable}, std::move(mine)...);
}

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_CROSS_H_
