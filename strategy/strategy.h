#ifndef LOCKSTEP_STRATEGY_STRATEGY_H_
#define LOCKSTEP_STRATEGY_STRATEGY_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "strategy/copy.h"
#include "strategy/cross.h"
#include "strategy/distributed_dataset.h"
#include "strategy/engine.h"
#include "strategy/replica.h"
#include "strategy/run_steps.h"
#include "strategy/workers/workers.h"

namespace lockstep::strategy {

// The replica for which a function of DistributeValues() makes a value.
struct ValueContext {
  int replica_id = 0;  // among all replicas
  int num_replicas = 1;
};

// Strategy defines how one program trains on several replicas: on which devices
// they run, where variables lie, and how values are reduced. A function that
// runs in each replica gets a Replica, one that acts across them a Cross, one
// that updates a copy of a variable a Copy; each may do what the methods of its
// argument do.
//
//   auto strategy = Strategy::Make(options).value();
//   auto sums = strategy->Run([](Replica& replica, const Value& mine) {
//     return replica.AllReduce(ReduceOp::kSum, mine);
//   }, values);
//
// Threads: one call at a time. Functions that are passed in must not throw.
class Strategy {
 public:
  // A strategy of one process.
  //
  //   kInvalidArgument  as StrategyOptions::Validate(); kMultiWorkerMirrored,
  //                     which needs Join() or the other Make()
  static absl::StatusOr<std::unique_ptr<Strategy>> Make(
      const StrategyOptions& options);

  // The strategy of one of several workers, for kMultiWorkerMirrored, or for
  // kParameterServer with group_beside_servers. All workers must pass the same
  // options.
  //
  //   kInvalidArgument  as StrategyOptions::Validate(); another kind; `workers`
  //                     is null
  static absl::StatusOr<std::unique_ptr<Strategy>> Make(
      const StrategyOptions& options, std::unique_ptr<Collective> workers);

  // The strategy of this process in a program of several processes. Under
  // kMultiWorkerMirrored it joins all workers of the cluster, and each call
  // waits for all of them. Strategies of other kinds have the replicas of this
  // process alone.
  //
  // Under kParameterServer TrainedBy::Make() joins a job, whose servers combine
  // the gradients of all workers. With WorkersOptions::group_beside_servers the
  // workers of the job form a group too; without it only should_checkpoint()
  // and should_save_summary() depend on TF_CONFIG here.
  //
  // When a worker ends, the calls of all others return kAborted, or
  // kUnavailable if it was killed and has not started again. To go on, each
  // must destroy its strategy, make a new one, and load the newest checkpoint.
  //
  //   kInvalidArgument  as StrategyOptions::Validate(); workers have another
  //                     number of replicas or another order of sums
  //   others            as JoinWorkers()
  static absl::StatusOr<std::unique_ptr<Strategy>> Join(
      const StrategyOptions& options, const WorkersOptions& workers = {});

  // The strategy in force where a program has made none: one replica. It may
  // use the variables of all strategies while none of their replicas runs.
  // Reading a variable reduces its copies in this process and writing it writes
  // them, by the rules of its own strategy; a kOnRead variable of a group of
  // workers is refused with kInvalidArgument, except that one of
  // kOnlyFirstReplica may be read.
  static Strategy& Default();

  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  // Calls fn(Cross&) in this thread, and returns its result: a Status, or a
  // StatusOr.
  //
  //   kFailedPrecondition  the thread runs a replica, or acts across the
  //                        replicas of another strategy
  template <class F>
  requires std::is_invocable_v<F&, Cross&>
  auto Across(F fn) {
    using Type = typename ResultOfCall<F, Cross&>::Type;
    std::optional<Type> result;
    absl::Status entered = engine_.Across([&] {
      Cross cross(engine_);
      result = Call(fn, cross);
      return absl::OkStatus();
    });
    if (!entered.ok()) return Type(std::move(entered));
    return *std::move(result);
  }

  // As Cross::Run(). Errors: also as Across().
  template <class F, class... A>
  requires std::is_invocable_v < F&, Replica&, const Component<A>
  &... > auto Run(F fn, const A&... args) {
    return Across([&](Cross& cross) { return cross.Run(fn, args...); });
  }

  // As the methods of Cross. Errors: also as Across().
  template <class D>
  requires Reducible<D> absl::StatusOr<Value> Reduce(
      ReduceOp op, const D& value, absl::Span<const int64_t> axes = {}) {
    return Across([&](Cross& cross) { return cross.Reduce(op, value, axes); });
  }
  template <class D>
  requires Reducible<D> absl::StatusOr<Leaf> Gather(const D& value,
                                                    int64_t axis) {
    return Across([&](Cross& cross) { return cross.Gather(value, axis); });
  }
  absl::StatusOr<Variable> Create(const VariableOptions& options) {
    return Across([&](Cross& cross) { return cross.Create(options); });
  }
  // A variable with defaults for all other options.
  absl::StatusOr<Variable> Create(const std::string& name, Value initial) {
    VariableOptions options;
    options.name = name;
    options.initializer = Starting(std::move(initial));
    return Create(options);
  }
  absl::StatusOr<Value> Read(const Variable& variable) {
    return Across([&](Cross& cross) { return cross.Read(variable); });
  }
  template <class D>
  requires Reducible<D> absl::Status Assign(const Variable& variable,
                                            const D& value) {
    return Across([&](Cross& cross) { return cross.Assign(variable, value); });
  }
  absl::StatusOr<Placement> NonSlotPlacement(
      absl::Span<const Variable> variables) {
    return Across(
        [&](Cross& cross) { return cross.NonSlotPlacement(variables); });
  }

  // Calls fn(ValueContext) for each replica of this worker, in this thread, and
  // returns a StatusOr<PerReplica<R>>. Errors: those of `fn`.
  template <class F>
  requires std::is_invocable_v<F&, ValueContext>
  auto DistributeValues(F fn) {
    using R = typename ResultOfCall<F, ValueContext>::Value;
    using Type = absl::StatusOr<PerReplica<R>>;
    std::vector<R> local;
    for (int r = 0; r < engine_.group().local(); ++r) {
      auto made = Call(fn, ValueContext{first_replica() + r, replicas()});
      if (!made.ok()) return Type(made.status());
      local.push_back(*std::move(made));
    }
    return Type(PerReplica<R>(std::move(local), first_replica()));
  }

  // Divides a data set among the replicas of all workers: each step uses one
  // batch of it. Errors: as strategy::Distribute().
  absl::StatusOr<DistributedDataset> Distribute(
      const Dataset& dataset, const InputOptions& options = {}) {
    return strategy::Distribute(engine_, dataset, options);
  }
  // Distributes the data set that `make` returns for this worker; its elements
  // must be batches for one replica. Errors: as strategy::DistributeFrom().
  absl::StatusOr<DistributedDataset> DistributeFrom(
      const DatasetFunction& make, const InputOptions& options = {}) {
    return strategy::DistributeFrom(engine_, make, options);
  }

  // Calls fn(StepContext&, Cross&, const PerReplica<Element>&) for `steps`
  // steps of the data. Returns the outputs of the last one.
  //
  //   kOutOfRange  the data ended before the last step
  //   others       of `fn` and the data; as Across()
  template <class F>
  requires std::is_invocable_r_v < absl::Status, F&, StepContext&, Cross&,
      const PerReplica<Element>
  & > absl::StatusOr<StepOutputs> RunSteps(DistributedDataset& data, int steps,
                                           F fn) {
    StepOutputs outputs;
    for (int i = 0; i < steps; ++i) {
      auto inputs = data.Next();
      if (!inputs.ok()) return inputs.status();
      outputs.last_step.clear();
      StepContext context(outputs);
      ++outputs.calls;
      absl::Status done =
          Across([&](Cross& cross) { return fn(context, cross, *inputs); });
      if (!done.ok()) return done;
    }
    return outputs;
  }

  // The copies of a variable in this worker.
  //
  //   kInvalidArgument  Owns() is false
  //   and the errors of Across()
  absl::StatusOr<AtVariable<Value>> LocalCopies(const Variable& variable);

  // True if this strategy made the variable; the default strategy owns all.
  bool Owns(const Variable& variable) const {
    return engine_.variables().Owns(variable);
  }
  Kind kind() const { return engine_.kind(); }
  int replicas() const { return engine_.group().replicas(); }
  int local_replicas() const { return engine_.group().local(); }
  int first_replica() const { return engine_.group().first_replica(); }
  int workers() const { return engine_.group().workers(); }
  int worker() const { return engine_.group().worker(); }
  const Placement& worker_devices() const { return engine_.worker_devices(); }
  const Placement& parameter_devices() const {
    return engine_.variables().parameter_devices();
  }

  // True: every worker must create the variables; worker 0's values are used.
  // Under kParameterServer the values of the first worker that reaches the
  // chief are used, which may be any, and TrainedBy::Make() of the others waits
  // for them.
  bool should_init() const { return true; }
  // True if this process writes checkpoints: that of worker 0. All workers must
  // read the variables for one, because reading a kOnRead variable waits for
  // all. Under kParameterServer the job's chief keeps those of the variables on
  // its servers.
  bool should_checkpoint() const { return keeps_outputs_ && worker() == 0; }
  // True if this process writes summaries.
  bool should_save_summary() const { return should_checkpoint(); }

 private:
  friend class TrainedBy;  // hands variables to servers

  explicit Strategy(Engine& engine) : engine_(engine) {}
  explicit Strategy(std::unique_ptr<Engine> engine)
      : owned_(std::move(engine)), engine_(*owned_) {}

  const std::unique_ptr<Engine> owned_;  // null for the default strategy
  Engine& engine_;
  // False at a worker of a job with servers that is not worker 0.
  bool keeps_outputs_ = true;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_STRATEGY_H_
