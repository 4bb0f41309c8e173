#ifndef LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_
#define LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/collective/arithmetic.h"
#include "strategy/values/options.h"
#include "strategy/variables/scatter.h"
#include "strategy/variables/variable.h"

namespace lockstep::strategy {

// The ways to write a variable.
enum class Assignment { kAssign, kAdd, kSubtract };

// VariableStore makes the variables of a strategy and has access to their
// copies. It knows no replicas: contexts decide which copy a call means.
//
// Threads: Make() from one thread at a time; copies as Variable says.
class VariableStore {
 public:
  // `replica_devices` has a device for each replica of the process.
  VariableStore(Kind kind, Placement replica_devices);

  // Where variables are placed unless they are colocated: on the devices of the
  // replicas, or, for one-copy kinds, on one device of its own.
  const Placement& parameter_devices() const { return parameter_devices_; }

  //   kInvalidArgument  no name or initializer; synchronization is kNone, or
  //                     the mean of an integer is wanted, under a mirrored
  //                     kind; colocation with devices or a variable that are
  //                     not this strategy's
  absl::Status Check(const VariableOptions& options) const;

  // Makes the variable with `initial` in all copies. Names need not be unique.
  //
  // Errors: as Check(); kInvalidArgument also: the mean of an integer
  absl::StatusOr<Variable> Make(const VariableOptions& options,
                                Value initial) const;

  // Where options.colocate_with puts a variable.
  Placement PlacementOf(const VariableOptions& options) const;

  // Whether this store made the variable. A default strategy has all.
  bool Owns(const Variable& variable) const;
  //   kInvalidArgument  Owns() is false
  absl::Status CheckOwner(const Variable& variable) const;

  // Whether the variable has one copy that knows no aggregation.
  bool IsPlain(const Variable& variable) const;
  // Whether each replica has an unsynchronised copy.
  bool IsOnRead(const Variable& variable) const;

  size_t CountOfCopies(const Variable& variable) const {
    return variable.state_->copies.size();
  }
  // The copy that a replica of this process reads.
  size_t CopyOfReplica(const Variable& variable, size_t replica) const {
    return variable.state_->copies.size() == 1 ? 0 : replica;
  }
  const Value& ReadCopy(const Variable& variable, size_t copy) const {
    return variable.state_->copies[copy];
  }

  // From now on the values of the variable come from the servers of a job.
  void Serve(const Variable& variable) const;
  //   kFailedPrecondition  Serve() was called for the variable
  absl::Status CheckNotServed(const Variable& variable) const;
  // Writes values that came from servers to all copies. `bytes` must be the
  // elements of the variable's shape, row-major.
  //
  //   kInternal  another number of bytes
  absl::Status WriteServed(const Variable& variable,
                           absl::Span<const std::byte> bytes) const;

  //   kInvalidArgument     the variable is not this store's; another type or
  //                        shape
  //   kFailedPrecondition  as CheckNotServed()
  absl::Status CheckWrite(const Variable& variable, const Value& value) const;

  // Errors: as CheckWrite().
  absl::Status Write(const Variable& variable, size_t copy, Assignment how,
                     const Value& value) const;

  // Writes rows of one copy. Errors: as ApplyScatter().
  absl::Status WriteRows(const Variable& variable, size_t copy, ScatterOp op,
                         const Slices& rows) const;

  // The bytes of a copy, for update rules.
  absl::Span<std::byte> MutableBytes(const Variable& variable,
                                     size_t copy) const {
    return variable.state_->copies[copy].mutable_bytes();
  }

 private:
  const Kind kind_;
  const Placement replica_devices_;
  Placement parameter_devices_;
  const uint64_t number_;  // of this store, unique in the process
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_
