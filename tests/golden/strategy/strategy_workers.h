#ifndef LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_WORKERS_H_
#define LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_WORKERS_H_

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/strategy.h"
#include "tests/golden/report.h"
#include "tests/golden/strategy/strategy_json.h"

namespace lockstep::golden {

// One worker of a scenario: its strategy, and its variables by name.
struct StrategyWorker {
  std::unique_ptr<strategy::Strategy> owned;
  strategy::Strategy* strategy = nullptr;
  std::map<std::string, strategy::Variable> variables;
  int index = 0;

  Seat SeatOf(int local) const {
    return {index, local, strategy->local_replicas()};
  }
  const strategy::Variable& VariableOf(const Json& name) const;

  // A value that goes in, as this worker has it: the component of each replica.
  strategy::PerReplica<Node> Nodes(const Json& in) const;
};

// Calls a function of a replica. An exception becomes an error, so that it
// leaves no thread and no other replica waiting.
template <class F>
auto Guarded(F function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

// The results of an operation on one worker: in canonical form, one for each
// local replica or copy, or one for all.
using Results = std::vector<Json>;

// StrategyWorkers makes the workers of a scenario, each for a thread of its
// own, and the group that they form.
//
// Throws as the functions of trace.h do.
class StrategyWorkers {
 public:
  explicit StrategyWorkers(const Json& scenario);

  const std::vector<StrategyWorker>& workers() const { return workers_; }

  // Calls operation(worker) for all workers at once and returns their answers.
  // What it throws comes out of this call.
  std::vector<absl::StatusOr<Results>> All(
      const std::function<absl::StatusOr<Results>(StrategyWorker&)>& operation);

  // Makes a variable that the scenario describes in all workers.
  //
  // Errors: that of the first worker that has one.
  absl::Status Create(const Json& variable);

  // Compares status and results of an operation with the recorded ones.
  void Compare(const Json& op,
               const std::vector<absl::StatusOr<Results>>& answers,
               Report& report) const;
  // Compares the copies of all variables with a recorded state.
  void CompareState(const Json& state, Report& report) const;
  // Gives all variables the copies of a recorded state.
  void TakeState(const Json& state);

 private:
  void CompareCopies(const Json& numbers, const std::string& name, bool equal,
                     const StrategyWorker& worker, Report& report) const;

  std::vector<StrategyWorker> workers_;
};

// The options of a variable as a scenario describes it, for one worker.
strategy::VariableOptions ReadOptions(const Json& variable,
                                      const StrategyWorker& worker);

ReduceOp OpOf(const Json& op);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_STRATEGY_STRATEGY_WORKERS_H_
