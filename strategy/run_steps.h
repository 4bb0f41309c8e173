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

// The outputs of Strategy::RunSteps().
struct StepOutputs {
  int calls = 0;  // steps that were begun
  // The tensors of the last step, by name: reduced, or one per replica.
  std::map<std::string, std::variant<Value, PerReplica<Value>>> last_step;
  // The newest output of each name that is no tensor.
  std::map<std::string, std::any> others;
};

// StepContext collects the outputs of a step that RunSteps() runs.
//
// Threads: as the Cross or Replica that is passed to a call.
class StepContext {
 public:
  explicit StepContext(StepOutputs& outputs) : outputs_(outputs) {}

  // Sets an output across replicas: the reduced `value`, or without `op` the
  // value of each replica.
  //
  //   kInvalidArgument  also: workers reduce outputs of different names;
  //                     names both
  //   others            as Cross::Reduce()
  absl::Status Output(Cross& cross, const std::string& name,
                      const PerReplica<Value>& value,
                      std::optional<ReduceOp> op = std::nullopt);
  // Sets an output in a replica: the reduced values `mine` of all replicas, all
  // of which must call it.
  //
  //   kInvalidArgument  also: replicas differ in `name` or `op`; names both
  //   others            as Replica::Merge() and Cross::Reduce()
  absl::Status Output(Replica& replica, const std::string& name,
                      const Value& mine, ReduceOp op);

  // Sets an output that is no tensor. The value of this worker's first replica
  // counts.
  void Other(Cross& cross, const std::string& name, std::any value);
  // As above, in a replica; all replicas must call it.
  //
  //   kInvalidArgument  replicas differ in `name`; names both
  //   others            as Replica::Merge()
  absl::Status Other(Replica& replica, const std::string& name, std::any value);

 private:
  StepOutputs& outputs_;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_RUN_STEPS_H_
