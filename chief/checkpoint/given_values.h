#ifndef LOCKSTEP_CHIEF_CHECKPOINT_GIVEN_VALUES_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_GIVEN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/checkpoint/format/safetensors_file.h"
#include "common/plan/variable_spec.h"

namespace lockstep::chief {

// True if a worker gives the first values of some of the variables.
bool HasGivenValues(const std::vector<VariableSpec>& variables);

// GivenValues collects the values that one worker gives to the variables whose
// initializer is kGiven, in a file, until the servers have them:
//
//   Want -> (the first live worker that asks is the sender) -> Write... -> Take
//
// A sender that dies is replaced, and its successor must send all values from
// the first byte on. The file is <checkpoint directory>/initial.safetensors, so
// that a chief that is started again finds it; without such a directory it is a
// temporary file without a name. When a chief begins to collect, it sets the
// file of an earlier run aside: its successor must not take that for the values
// of this run.
//
// Threads: safe to share.
class GivenValues {
 public:
  // `directory` is that of checkpoints; empty: none.
  explicit GivenValues(std::string directory);

  // Declares that the servers need the values of these variables. No effect if
  // they are wanted already.
  //
  // Errors: the file cannot be made
  absl::Status Want(const std::vector<VariableSpec>& variables)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if `worker`, which called, must send all values: they are wanted, and
  // no other worker for which `is_alive` returns true is sending them.
  bool IsWantedFrom(int worker, const std::function<bool(int)>& is_alive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Stores values that `worker` sends, from byte `offset` of a variable on. A
  // block may be repeated.
  //
  //   kFailedPrecondition  they are not wanted from this worker
  //   kInvalidArgument     no such variable, or bytes outside of it
  //   and errors of the file
  absl::Status Write(int worker, size_t variable, uint64_t offset,
                     absl::Span<const char> bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // The sender and its progress as text, e.g. "worker 0 to send the initial
  // values, 40 %".
  std::string Progress() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the values once all have arrived; null before.
  //
  // Errors: the file cannot be completed or read
  absl::StatusOr<std::shared_ptr<SafetensorsReader>> Take()
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the values that a previous chief has collected; null if there are
  // none or they do not fit `variables`. The caller knows that the previous
  // chief ran the same job, so a file that was set aside is kept again.
  std::shared_ptr<SafetensorsReader> TakeKept(
      const std::vector<VariableSpec>& variables) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string KeptPath() const;
  std::string AsidePath() const;
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;

  mutable Mutex mutex_;
  std::vector<VariableSpec> variables_ ABSL_GUARDED_BY(mutex_);  // wanted
  std::optional<int> sender_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SafetensorsWriter> writer_ ABSL_GUARDED_BY(mutex_);
  bool set_aside_ ABSL_GUARDED_BY(mutex_) = false;  // the file of AsidePath()
  uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;    // bytes
  uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<SafetensorsReader> reader_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_GIVEN_VALUES_H_
