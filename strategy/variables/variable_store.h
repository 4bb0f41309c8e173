#ifndef LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_
#define LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/collective/arithmetic.h"
#include "strategy/values/options.h"
#include "strategy/variables/scatter.h"
#include "strategy/variables/variable.h"

namespace lockstep::strategy {

// The ways to write a variable.
enum class Assignment { kAssign, kAdd, kSubtract };

// Return a call as messages name it, and as replicas and workers compare it:
// "AssignAdd(\"w\")".
std::string CallOf(absl::string_view method, absl::string_view variable);
std::string CallOf(Assignment how, const Variable& variable);
std::string CallOf(ScatterOp op, const Variable& variable);
// Has all options but the initializer and the place, which are not compared:
// "Create(\"w\") with kOnWrite, kNone, trainable".
std::string CallOf(const VariableOptions& options);

// VariableStore makes the variables of a strategy and accesses their copies by
// index. Its callers, the contexts, decide which copy belongs to a replica.
//
// Threads: Make() may be called by one thread at a time; accesses to copies as
//          Variable says.
class VariableStore {
 public:
  // `replica_devices` must have a device for each replica of the process.
  // `in_workers`: the members of a group of workers have copies too.
  VariableStore(Kind kind, Placement replica_devices, bool in_workers = false);

  // The placement of variables that are not colocated: the devices of the
  // replicas, or under kCentral one device that runs no replica.
  const Placement& parameter_devices() const { return parameter_devices_; }

  // OK if Make() accepts `options` with some initial value.
  //
  //   kInvalidArgument  there is no name or initializer; under a mirrored kind
  //                     the synchronization is kNone; colocate_with is of
  //                     another strategy
  absl::Status Check(const VariableOptions& options) const;

  // Makes the variable with `initial` in all copies. Names need not be unique.
  //
  // Errors: as Check() and Value::Check(); kInvalidArgument also: under a
  //         mirrored kind, kMean of an integer, and kMean and kSum of a
  //         type that is no number
  absl::StatusOr<Variable> Make(const VariableOptions& options,
                                Value initial) const;

  // Returns the placement of a variable with these options.
  Placement PlacementOf(const VariableOptions& options) const;

  // True if this store made the variable; the default strategy owns all.
  bool Owns(const Variable& variable) const;
  // True if another store made the variable, which the default strategy alone
  // may use: code without a context acts across all replicas of its strategy.
  bool IsForeign(const Variable& variable) const;
  //   kInvalidArgument  the variable is foreign, and its replicas are those of
  //                     several workers, which must all take part
  absl::Status CheckLocal(const Variable& variable) const;
  //   kInvalidArgument  Owns() is false
  absl::Status CheckOwner(const Variable& variable) const;

  // True if the variable has one copy and ignores its aggregation.
  bool IsPlain(const Variable& variable) const;
  // True if each replica has an unsynchronised copy.
  bool IsOnRead(const Variable& variable) const;

  // Returns the number of copies in this process.
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

  // Makes CheckNotServed() fail for the variable: the servers of a job hold its
  // values, and only WriteServed() may write them.
  void Serve(const Variable& variable) const;
  // Ends the effect of Serve(). The copies keep their values.
  void EndServing(const Variable& variable) const;
  //   kFailedPrecondition  Serve() was called for the variable
  absl::Status CheckNotServed(const Variable& variable) const;
  // Writes values from servers to all copies. `bytes` must be the elements of
  // the variable's shape, row-major.
  //
  //   kInternal  `bytes` has another size
  absl::Status WriteServed(const Variable& variable,
                           absl::Span<const std::byte> bytes) const;

  // OK if `value` can be written to the variable.
  //
  //   kInvalidArgument     the variable is of another store, or `value` has
  //                        another type or shape; as Value::Check()
  //   kFailedPrecondition  as CheckNotServed()
  absl::Status CheckWrite(const Variable& variable, const Value& value) const;

  // Errors: as CheckWrite().
  absl::Status Write(const Variable& variable, size_t copy, Assignment how,
                     const Value& value) const;

  // OK if the rows can be written to the copy. Errors: as WriteRows().
  absl::Status CheckWriteRows(const Variable& variable, size_t copy,
                              ScatterOp op, const Slices& rows) const;

  // Writes rows of one copy. Errors: as ApplyScatter() and CheckWrite().
  absl::Status WriteRows(const Variable& variable, size_t copy, ScatterOp op,
                         const Slices& rows) const;

  // The elements of a copy, row-major, for update rules.
  absl::Span<std::byte> MutableBytes(const Variable& variable,
                                     size_t copy) const {
    return variable.state_->copies[copy].mutable_bytes();
  }

 private:
  const Kind kind_;
  const bool in_workers_;
  const Placement replica_devices_;
  Placement parameter_devices_;
  const uint64_t number_;  // identifies this store in the process
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_VARIABLES_VARIABLE_STORE_H_
