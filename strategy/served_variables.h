#ifndef LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_
#define LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strategy/servers/join_job.h"
#include "strategy/servers/training_job.h"
#include "strategy/variables/variable_store.h"

namespace lockstep::strategy {

// ServedVariables are variables of a strategy whose values lie on the servers
// of a job: it pushes the gradients of this process, and writes the values that
// the servers compute from all workers' gradients to the copies of this
// process.
//
// Threads: all replicas of the process must be waiting during a call.
// Borrows: the store, which must outlive it.
class ServedVariables {
 public:
  // Returns the argument for JoinJob(): each variable starts with the values of
  // its first copy. `variables` must be of floating-point types. The spans are
  // valid until a copy is written.
  static std::vector<JobVariable> Describe(
      const VariableStore& store, const std::vector<Variable>& variables);

  // Takes the first pass of the job and writes its values to the copies. From
  // then on the strategy's own writes to the variables return
  // kFailedPrecondition, until training is over or this object is destroyed.
  // `group` must outlive the object; see TrainingJob::Next().
  //
  // Errors: as TrainingJob::Next()
  static absl::StatusOr<std::unique_ptr<ServedVariables>> Begin(
      VariableStore& store, const std::vector<Variable>& variables,
      std::unique_ptr<TrainingJob> job, std::function<absl::Status()> group);

  ~ServedVariables();
  ServedVariables(const ServedVariables&) = delete;
  ServedVariables& operator=(const ServedVariables&) = delete;

  // The pass whose gradients the next Push() must hand in. Absent once training
  // is over: the copies then have the values with which it has ended. If the
  // servers were gone before this worker had those, the copies keep the values
  // of its last pass; a checkpoint has the newer ones.
  const std::optional<JobPass>& pass() const { return pass_; }

  // Returns gradients as Push() takes them.
  //
  //   kInvalidArgument  a variable is not on the servers, or is there twice
  absl::StatusOr<std::vector<std::optional<Leaf>>> InOrder(
      std::vector<std::pair<Variable, Leaf>> gradients) const;

  // Hands in the gradients of pass(), takes the next pass, and writes its
  // values to the copies. `gradients` must have one entry for each variable,
  // absent if the pass has no gradient for it; `loss` is the mean over the
  // pass's examples.
  //
  //   kOutOfRange       training is over
  //   kInvalidArgument  rows in place of a dense gradient. Nothing has changed
  //   others            as TrainingJob::Next()
  absl::Status Push(const std::vector<std::optional<Leaf>>& gradients,
                    double loss);

  // The number of passes whose gradients came too late to count.
  int64_t dropped() const { return dropped_; }

  // Returns the indices, below `num_examples`, of this worker's examples in
  // pass().
  //
  //   kOutOfRange  training is over, and pass() is absent from then on
  //   others       as TrainingJob::Examples() and Next()
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples);

 private:
  ServedVariables(VariableStore& store, const std::vector<Variable>& variables,
                  std::unique_ptr<TrainingJob> job,
                  std::function<absl::Status()> group)
      : store_(store),
        variables_(variables),
        job_(std::move(job)),
        group_(std::move(group)) {}
  absl::Status TakeNext();
  void EndServing() const;

  VariableStore& store_;
  const std::vector<Variable> variables_;
  const std::unique_ptr<TrainingJob> job_;
  const std::function<absl::Status()> group_;
  std::optional<JobPass> pass_;
  int64_t dropped_ = 0;
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_SERVED_VARIABLES_H_
