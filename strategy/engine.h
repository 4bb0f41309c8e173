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

// Engine has the state that all contexts of one strategy share: its replicas,
// its variables, and its group of workers. Private: programs use Strategy.
//
// Threads: as Strategy.
class Engine {
 public:
  // `options` must be valid; `workers` must be null if there is one worker.
  Engine(const StrategyOptions& options, std::unique_ptr<Collective> workers);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Kind kind() const { return options_.kind; }
  const Placement& worker_devices() const { return worker_devices_; }
  // All replicas of the strategy.
  const ReplicaGroup& group() const { return group_; }
  // The replicas of this process alone.
  const ReplicaGroup& own() const { return own_; }
  VariableStore& variables() { return variables_; }
  const VariableStore& variables() const { return variables_; }

  // Calls work(replica) for each replica of this process, all at the same time:
  // for the first in this thread, for the others in threads of their own.
  // Returns when all calls have returned; an error of one replica makes the
  // others' waits for it fail.
  //
  //   kResourceExhausted  the system has no thread for a replica
  //   others              of the first replica whose error is not the
  //                       consequence of another replica's
  absl::Status RunReplicas(absl::FunctionRef<absl::Status(Replica&)> work);

  // Calls work() in this thread, as one that acts across replicas.
  //
  //   kFailedPrecondition  the thread runs a replica, or is across the replicas
  //                        of another strategy
  absl::Status Across(absl::FunctionRef<absl::Status()> work) const;

  // As Across(), in a replica's thread. All other replicas of the process must
  // be waiting meanwhile.
  void AcrossFromReplica(absl::FunctionRef<void()> work) const;

 private:
  const StrategyOptions options_;
  const std::unique_ptr<Collective> workers_;
  const Placement worker_devices_;
  const ReplicaGroup group_;
  const ReplicaGroup own_;
  VariableStore variables_;
};

// Returns the replica that this thread runs; null while the thread acts across
// replicas. A thread that does neither runs the default strategy's replica.
Replica* CurrentReplica();

// The engine of the default strategy. It is never destroyed.
Engine& DefaultEngine();

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_ENGINE_H_
