#ifndef LOCKSTEP_STRATEGY_RUN_STEPS_H_
#define LOCKSTEP_STRATEGY_RUN_STEPS_H_

#include <any>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/cross.h"
#include "strategy/replica.h"

namespace lockstep::strategy {

// The outputs of a loop of steps.
struct StepOutputs {
  int calls = 0;  // of the function
  // Those of the last step, by name: reduced, or of each replica.
  std::map<std::string, std::variant<Value, PerReplica<Value>>> last_step;
  // Anything else.
  std::map<std::string, std::any> others;
};

// StepContext collects the outputs of a step that RunSteps() runs.
//
// Threads: as the context that a call is made in.
class StepContext {
 public:
  explicit StepContext(StepOutputs& outputs) : outputs_(outputs) {}

  // Across replicas: sets an output. Without an operation it is kept for each
  // replica, otherwise reduced. Errors: as Cross::Reduce().
  absl::Status Output(Cross& cross, const std::string& name,
                      const PerReplica<Value>& value,
                      std::optional<ReduceOp> op = std::nullopt);
  // In a replica, which must reduce. All replicas must call it.
  //
  // Errors: as Replica::Merge() and Cross::Reduce().
  absl::Status Output(Replica& replica, const std::string& name,
                      const Value& mine, ReduceOp op);

  // Sets an output that is no tensor. In a replica, it is that of the first
  // replica of this worker; all replicas must call it.
  void Other(Cross& cross, const std::string& name, std::any value);
  // Errors: as Replica::Merge().
  absl::Status Other(Replica& replica, const std::string& name, std::any value);

 private:
  StepOutputs& outputs_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_RUN_STEPS_H_
