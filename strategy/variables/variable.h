#ifndef LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_H_
#define LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/collective/value.h"
#include "strategy/values/distributed.h"

namespace lockstep::strategy {

// How the copies of a variable keep in step.
enum class Synchronization {
  kAuto,     // as kOnWrite
  kNone,     // refused where there may be several replicas
  kOnWrite,  // all copies are written together
  kOnRead,   // replicas write their own; reading across them reduces
};

// The one value that several replicas mean when they write together, or when
// their copies are read across replicas.
enum class Aggregation { kNone, kSum, kMean, kOnlyFirstReplica };

// Variable is a handle to the copies of a variable, one for each device of its
// placement. Copying the handle copies no values; the copies live as long as a
// handle does. Contexts read and write it: Replica, Cross and Copy.
//
// Threads: each replica reads and writes its own copy; everything else happens
//          while all replicas of the process stand still.
class Variable {
 public:
  const std::string& name() const { return state_->name; }
  ElementType type() const { return state_->type; }
  const std::vector<int64_t>& shape() const { return state_->shape; }
  Synchronization synchronization() const { return state_->synchronization; }
  Aggregation aggregation() const { return state_->aggregation; }
  bool trainable() const { return state_->trainable; }
  const Placement& placement() const { return state_->placement; }

  // "v", "v/replica_1", ...
  std::string CopyName(size_t copy) const;

  // Whether both are handles to one variable.
  bool operator==(const Variable&) const = default;

 private:
  friend class VariableStore;
  struct State {
    std::string name;
    Synchronization synchronization = Synchronization::kOnWrite;
    Aggregation aggregation = Aggregation::kNone;
    bool trainable = true;
    Placement placement;
    uint64_t owner = 0;  // number of the store that made it
    // Those of all copies, for replicas that may not look at each other's.
    ElementType type = ElementType::kFloat32;
    std::vector<int64_t> shape;
    std::vector<Value> copies;
    bool served = false;  // servers of a job write the copies
  };
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

struct VariableOptions {
  std::string name;
  // The initial value. Worker 0's is that of all workers and all copies.
  std::function<absl::StatusOr<Value>()> initializer;
  Synchronization synchronization = Synchronization::kAuto;
  Aggregation aggregation = Aggregation::kNone;
  // Absent: true, but false for kOnRead.
  std::optional<bool> trainable;
  // The variable gets the devices of another one, or these devices.
  std::variant<std::monostate, Variable, Placement> colocate_with;
};

// Returns an initializer that has this value.
std::function<absl::StatusOr<Value>()> Starting(Value value);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_H_
