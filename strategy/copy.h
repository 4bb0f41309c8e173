#ifndef LOCKSTEP_STRATEGY_COPY_H_
#define LOCKSTEP_STRATEGY_COPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/engine.h"

namespace lockstep::strategy {

// Place is the context of a function that runs once for each device of a
// placement: it reads and writes the copies of variables on that device.
//
// Threads: must be used in the thread that calls the function, until the
//          function returns.
class Place {
 public:
  Place(Engine& engine, const Placement& placement, size_t index)
      : engine_(engine), placement_(placement), index_(index) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  size_t index() const { return index_; }  // in the placement
  const std::string& device() const { return placement_.devices[index_]; }

  // Read or write the copy on this device of any variable of the strategy.
  //
  //   kInvalidArgument     the variable is of another strategy, or has several
  //                        copies and none on this device; `value` has another
  //                        type or shape
  //   kFailedPrecondition  a write: the variable lies on a job's servers
  absl::StatusOr<Value> Read(const Variable& variable) const;
  absl::Status Assign(const Variable& variable, const Value& value);
  absl::Status AssignAdd(const Variable& variable, const Value& value);
  absl::Status AssignSub(const Variable& variable, const Value& value);

  // The elements of the copy on this device, row-major, for update rules. The
  // variable must be of this strategy. Empty where Assign() refuses it.
  absl::Span<std::byte> MutableBytes(const Variable& variable);

 private:
  absl::StatusOr<size_t> CopyOf(const Variable& variable) const;
  absl::Status Write(Assignment how, const Variable& variable,
                     const Value& value);

  Engine& engine_;
  const Placement& placement_;
  const size_t index_;
};

// Copy is the context of a function that updates one copy of a variable.
//
// Threads: must be used by the thread that runs the function.
class Copy : public Place {
 public:
  Copy(Engine& engine, const Variable& variable, size_t index)
      : Place(engine, variable.placement(), index), variable_(variable) {}

  const Variable& variable() const { return variable_; }

  // Without a variable: of the copy that is being updated. Errors: as Place.
  using Place::Assign;
  using Place::AssignAdd;
  using Place::AssignSub;
  using Place::Read;
  absl::StatusOr<Value> Read() const { return Read(variable_); }
  absl::Status Assign(const Value& value) { return Assign(variable_, value); }
  absl::Status AssignAdd(const Value& value) {
    return AssignAdd(variable_, value);
  }
  absl::Status AssignSub(const Value& value) {
    return AssignSub(variable_, value);
  }

 private:
  const Variable& variable_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_COPY_H_
