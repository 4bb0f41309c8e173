#ifndef LOCKSTEP_STRATEGY_ENGINE_H_
#define LOCKSTEP_STRATEGY_ENGINE_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/collective/collective.h"
#include "strategy/values/options.h"
#include "strategy/values/replica_group.h"
#include "strategy/variables/variable_store.h"

namespace lockstep::strategy {

class Replica;

// Engine is the common ground of the contexts of one strategy: its replicas,
// its variables, and the group of workers. Programs use Strategy.
//
// Threads: as Strategy.
class Engine {
 public:
  // `options` are valid; `workers` is null where there is one worker.
  Engine(const StrategyOptions& options, std::unique_ptr<Collective> workers);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Kind kind() const { return options_.kind; }
  const Placement& worker_devices() const { return worker_devices_; }
  const ReplicaGroup& group() const { return group_; }
  VariableStore& variables() { return variables_; }
  const VariableStore& variables() const { return variables_; }

  // Calls work(replica) for each replica of this process, all at the same time:
  // the first in this thread. Returns when all have returned; an error of one
  // ends the waits of the others.
  //
  // Errors: that of the first replica that failed for a reason of its own.
  absl::Status RunReplicas(absl::FunctionRef<absl::Status(Replica&)> work);

  // Calls work() across replicas, in this thread.
  //
  //   kFailedPrecondition  the thread runs a replica, or is across the replicas
  //                        of another strategy
  absl::Status Across(absl::FunctionRef<absl::Status()> work) const;

  // As Across(), for a replica's thread while all replicas stand still.
  void AcrossFromReplica(absl::FunctionRef<void()> work) const;

 private:
  const StrategyOptions options_;
  const std::unique_ptr<Collective> workers_;
  const Placement worker_devices_;
  const ReplicaGroup group_;
  VariableStore variables_;
};

// The replica that this thread runs, which is that of the default strategy
// where no strategy runs one; null across replicas.
Replica* CurrentReplica();

// The engine of the default strategy, which lives for ever.
Engine& DefaultEngine();

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_ENGINE_H_
