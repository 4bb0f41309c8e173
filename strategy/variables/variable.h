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
#include "strategy/values/options.h"

namespace lockstep::strategy {

// How the copies of a variable are kept equal.
enum class Synchronization {
  kAuto,     // as kOnWrite
  kNone,     // not allowed for kinds that may have several replicas
  kOnWrite,  // a write changes all copies
  kOnRead,   // a replica writes its own copy; reading across replicas reduces
};

// How the values that several replicas write, or the copies that are read
// across replicas, become one value.
enum class Aggregation { kNone, kSum, kMean, kOnlyFirstReplica };

// Variable is a handle to the copies of a variable, one for each device of its
// placement. Copying the handle copies no values; the copies live as long as a
// handle does. Values are read and written through a Replica, Cross or Copy.
//
// Threads: a replica may access its own copy at any time; all other accesses
//          must happen while all replicas of the process are waiting. Methods
//          of the handle are safe to call from any thread.
class Variable {
 public:
  const std::string& name() const { return state_->name; }
  ElementType type() const { return state_->type; }
  const std::vector<int64_t>& shape() const { return state_->shape; }
  Synchronization synchronization() const { return state_->synchronization; }
  Aggregation aggregation() const { return state_->aggregation; }
  bool trainable() const { return state_->trainable; }
  const Placement& placement() const { return state_->placement; }

  // The name of copy `copy`: "v", "v/replica_1", ...
  std::string CopyName(size_t copy) const;

  // True if both are handles to one variable.
  bool operator==(const Variable&) const = default;

 private:
  friend class VariableStore;
  struct State {
    std::string name;
    Synchronization synchronization = Synchronization::kOnWrite;
    Aggregation aggregation = Aggregation::kNone;
    bool trainable = true;
    Placement placement;
    uint64_t owner = 0;          // number of the store that made it
    Kind kind = Kind::kDefault;  // of that store
    bool in_workers = false;     // as that store has it
    // Equal for all copies. Kept here, since a replica must not read the copy
    // of another one.
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
  // Returns the initial value. It is called at worker 0 alone, whose value all
  // copies of all workers get.
  std::function<absl::StatusOr<Value>()> initializer;
  Synchronization synchronization = Synchronization::kAuto;
  Aggregation aggregation = Aggregation::kNone;
  // Absent: true, but false for kOnRead.
  std::optional<bool> trainable;
  // Places the variable on the devices of another one, or on these devices.
  std::variant<std::monostate, Variable, Placement> colocate_with;
};

// Returns an initializer that returns `value`.
std::function<absl::StatusOr<Value>()> Starting(Value value);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_H_
