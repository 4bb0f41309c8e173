#ifndef LOCKSTEP_WORKER_DEVICE_FLOAT_COPIES_H_
#define LOCKSTEP_WORKER_DEVICE_FLOAT_COPIES_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/variable_spec.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// FloatCopies is float32 memory for a model whose variables have float16 or
// bfloat16 elements in the worker's memory: copies of the values, and gradients
// that are rounded on the way to the worker's memory.
//
// Borrows: the worker's memory, whose variables are of the same shapes.
// Threads: not thread-safe.
class FloatCopies {
 public:
  // True if some of the variables, which the model has in float32, have another
  // type in `memory`.
  static bool AreNeeded(const std::vector<VariableSpec>& variables,
                        const ParameterMemory& memory);

  // Errors as ParameterMemory::Make().
  static absl::StatusOr<std::unique_ptr<FloatCopies>> Make(
      const std::vector<VariableSpec>& variables,
      const ParameterMemory& memory);

  const ParameterMemory& memory() const { return copies_; }

  // Copies the value of a variable from the worker's memory. The conversion is
  // exact.
  void CopyValue(size_t variable) const;
  // Rounds the gradient of a variable to nearest, ties to even. Elements too
  // large for float16 become infinite, which servers refuse unless the job
  // allows it.
  void RoundGradient(size_t variable) const;

 private:
  FloatCopies(const ParameterMemory& memory, ParameterMemory copies)
      : memory_(memory), copies_(std::move(copies)) {}

  const ParameterMemory& memory_;
  const ParameterMemory copies_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DEVICE_FLOAT_COPIES_H_
