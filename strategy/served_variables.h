#ifndef LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_
#define LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/servers/join_job.h"
#include "strategy/servers/training_job.h"
#include "strategy/variables/variable_store.h"

namespace lockstep::strategy {

// ServedVariables are variables of a strategy whose values lie on the servers
// of a job: gradients go there, and what the servers made of those of all
// workers comes back into the copies of this process.
//
// Threads: while all replicas of the process stand still.
// Borrows: the store, which must outlive it.
class ServedVariables {
 public:
  // Returns the variables as JoinJob() takes them: floating-point ones, which
  // begin with the values of their first copies. The spans are valid until a
  // copy is written.
  static std::vector<JobVariable> Describe(
      const VariableStore& store, const std::vector<Variable>& variables);

  // Takes the first pass of the job and writes its values to the copies, which
  // the strategy then refuses to write itself.
  //
  // Errors: as TrainingJob::Next()
  static absl::StatusOr<std::unique_ptr<ServedVariables>> Begin(
      VariableStore& store, const std::vector<Variable>& variables,
      std::unique_ptr<TrainingJob> job);

  // The pass that the next Push() hands in; absent: training is over, and the
  // copies keep the values of the last pass. The job's checkpoint has the
  // newest.
  const std::optional<JobPass>& pass() const { return pass_; }

  // Hands in the gradients of pass(), takes the next pass, and writes its
  // values. One gradient for each variable; absent: the pass has none.
  //
  //   kOutOfRange       training is over
  //   kInvalidArgument  rows in place of a dense gradient. Nothing has changed
  //   others            as TrainingJob::Next()
  absl::Status Push(const std::vector<std::optional<Leaf>>& gradients,
                    double loss);

  // Passes whose gradients came too late to count, as those of backups.
  int64_t dropped() const { return dropped_; }

  // This worker's examples of pass(), indices below `num_examples`.
  //
  //   kOutOfRange  training is over
  //   others       as TrainingJob::Examples()
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples);

 private:
  ServedVariables(VariableStore& store, const std::vector<Variable>& variables,
                  std::unique_ptr<TrainingJob> job)
      : store_(store), variables_(variables), job_(std::move(job)) {}
  absl::Status TakeNext();

  VariableStore& store_;
  const std::vector<Variable> variables_;
  const std::unique_ptr<TrainingJob> job_;
  std::optional<JobPass> pass_;
  int64_t dropped_ = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_
