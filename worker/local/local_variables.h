#ifndef LOCKSTEP_WORKER_LOCAL_LOCAL_VARIABLES_H_
#define LOCKSTEP_WORKER_LOCAL_LOCAL_VARIABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "common/job/variable_settings.h"
#include "common/plan/variable_spec.h"
#include "server/update/optimizer.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// LocalVariables is a worker's own copy of the variables, which makes the local
// steps of one pass, by the rules of servers:
//
//   Start -> (compute gradients) -> Step -> ... -> WriteDifference
//
// A variable with its own optimizer in the job keeps it and its rate; buffers
// take the changes of passes; variables that are not trained keep their values.
// Each Start() resets slots and counts of updates, so a pass that is redone has
// the same result, and a worker that dies loses no state.
//
// Threads: not thread-safe.
class LocalVariables {
 public:
  // `job` has local steps, and must have passed ValidateJobConfig.
  //
  //   kInvalidArgument    as SettingsOf(), also of the local optimizer
  //   kResourceExhausted  no memory for another copy, its gradients and slots
  static absl::StatusOr<LocalVariables> Make(
      const JobConfig& job, const std::vector<VariableSpec>& variables);

  // The memory in which gradients are computed.
  const ParameterMemory& memory() const { return memory_; }

  // Copies the values of `shared`, which must be those after step
  // `global_step`.
  void Start(const ParameterMemory& shared, int64_t global_step);

  // The next local step: applies the gradients in memory() to its values.
  //
  //   kInvalidArgument  as Optimizer::Apply()
  absl::Status Step();

  // Writes the value in `shared` minus the local value to the gradient in
  // `shared`: zeros for a variable that is not trained. Rounds as Combine()
  // does.
  void WriteDifference(size_t variable, const ParameterMemory& shared) const;

  // Returns the gradients that clipping limits, by variable. The spans of
  // buffers and of variables that are not trained are empty.
  std::vector<absl::Span<std::byte>> ClippedGradients() const;

 private:
  struct Slot {
    std::vector<std::byte> memory;
    server::SlotSpec spec;
  };
  struct Variable {
    VariableSpec spec;
    VariableSettings settings;
    std::vector<Slot> slots = {};
  };

  LocalVariables(const JobConfig& job, ParameterMemory memory);
  bool IsUpdated(const Variable& variable) const {
    return variable.settings.trained || variable.spec.buffer;
  }
  double RateOf(const Variable& variable) const;

  ParameterMemory memory_;
  const int64_t steps_;  // H
  std::vector<Variable> variables_;
  // By VariableSettings::optimizer; the first is the local one.
  std::vector<server::Optimizer> optimizers_;
  std::vector<LearningRateConfig> rates_;
  std::vector<server::AdamPowers> powers_;
  int64_t global_step_ = 0;
  int64_t done_ = 0;  // local steps since Start()
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOCAL_LOCAL_VARIABLES_H_
