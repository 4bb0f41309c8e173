#ifndef LOCKSTEP_STRATEGY_TRAINED_BY_H_
#define LOCKSTEP_STRATEGY_TRAINED_BY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "strategy/served_variables.h"
#include "strategy/strategy.h"

namespace lockstep::strategy {

// A gradient of a variable: dense, or rows of it; absent if the loss does not
// depend on the variable.
struct GradientAndVariable {
  std::optional<Leaf> gradient;
  Variable variable;
};

// A loss with its gradients: one entry for each variable that the function was
// passed, in the same order.
struct LossAndGradients {
  Value loss;
  std::vector<std::optional<Leaf>> gradients;
};

// Returns the optimizer of a job file that sets only this kind. Some of its
// defaults depend on the kind, so OptimizerConfig{} does not have them.
OptimizerConfig OptimizerOf(OptimizerConfig::Kind kind);

// Under kParameterServer, `optimizer` and `learning_rate` are not used: those
// of the job file are.
struct TrainedByOptions {
  // As in a job file. To choose a kind, assign OptimizerOf(kind): setting
  // `kind` alone leaves the momentum, epsilon and weight decay of another one.
  OptimizerConfig optimizer =
      OptimizerOf(OptimizerConfig::Kind::kGradientDescent);
  double learning_rate = 0.01;
  // How the gradients of the replicas become one: the mean if each replica's
  // loss is a mean over its examples, the sum if it has been divided by the
  // examples of all replicas.
  ReduceOp reduce = ReduceOp::kMean;
  CommunicationOptions communication;
  JobOptions job{};  // for kParameterServer alone
};

// TrainedBy trains variables of a strategy with one of the optimizers that
// servers have, bit for bit. Its slots and other state are variables of the
// strategy, beside the variables that they belong to.
//
// Under kParameterServer the variables lie on the servers of the job that
// TF_CONFIG names: Apply() reduces the gradients of this process, hands the
// mean to the servers, and returns when the values of the next pass are here.
//
// Threads: calls with a Replica must be made in that replica's thread, all
//          others while no replica runs.
// Borrows: the strategy.
class TrainedBy {
 public:
  // `variables` are those that Compute() and Minimize() pass to the program's
  // function. Under kParameterServer, joins the job, and returns when the
  // variables have the job's values.
  //
  //   kInvalidArgument  the optimizer has a setting that a job file refuses;
  //                     the learning rate is negative or not finite; a variable
  //                     is of another strategy, not trainable or of integers;
  //                     two have one name;
  //                     `reduce` is kSum under kParameterServer
  //   others            as JoinJob() and TrainingJob::Next()
  static absl::StatusOr<std::unique_ptr<TrainedBy>> Make(
      Strategy& strategy, const TrainedByOptions& options,
      std::vector<Variable> variables);
  // As above, with a job that has been joined already; for kParameterServer
  // alone.
  static absl::StatusOr<std::unique_ptr<TrainedBy>> Make(
      Strategy& strategy, const TrainedByOptions& options,
      std::vector<Variable> variables, std::unique_ptr<TrainingJob> job);
  TrainedBy(const TrainedBy&) = delete;
  TrainedBy& operator=(const TrainedBy&) = delete;

  // Calls pass(replica, variables), which must return a
  // StatusOr<LossAndGradients>, and pairs its gradients with their variables.
  // `grad_loss`, a scalar, is the gradient of the loss itself: each gradient is
  // multiplied by it. TensorFlow begins its backward pass with it instead,
  // which may round differently. Absent: 1.
  //
  //   kInvalidArgument  `pass` returned another number of gradients than
  //                     variables(); `grad_loss` is no scalar, or has another
  //                     type than a gradient
  //   others            of `pass`
  template <class F>
  absl::StatusOr<std::vector<GradientAndVariable>> Compute(
      Replica& replica, F pass,
      const std::optional<Value>& grad_loss = std::nullopt) {
    absl::StatusOr<LossAndGradients> made =
        pass(replica, absl::MakeConstSpan(variables_));
    if (!made.ok()) return made.status();
    return Pair(*std::move(made), grad_loss);
  }

  // Reduces the gradients of all replicas and updates all copies. A variable
  // without a gradient does not change, and gets its slots with its first
  // gradient. All replicas must call it with the same variables; under
  // kParameterServer these must be variables of Make(), each once.
  //
  //   kInvalidArgument  no variable has a gradient; replicas or workers differ
  //                     in the variables or in which gradients are absent; a
  //                     gradient does not have its variable's type and shape;
  //                     the variable is of another strategy; Ftrl, a sparse
  //                     gradient and a learning rate that is 0 in the
  //                     variable's type. Nothing has changed, and the calls of
  //                     all workers fail; under kParameterServer this one alone
  //   others            as Replica::Merge(), the reduction, and
  //                     ServedVariables::Push()
  absl::Status Apply(Replica& replica,
                     std::vector<GradientAndVariable> gradients);

  // Compute() and Apply(). Returns the replica's loss, which `grad_loss` leaves
  // as it is.
  template <class F>
  absl::StatusOr<Value> Minimize(
      Replica& replica, F pass,
      const std::optional<Value>& grad_loss = std::nullopt) {
    absl::StatusOr<LossAndGradients> made =
        pass(replica, absl::MakeConstSpan(variables_));
    if (!made.ok()) return made.status();
    Value loss = made->loss;
    auto pairs = Pair(*std::move(made), grad_loss);
    if (!pairs.ok()) return pairs.status();
    absl::Status applied = Apply(replica, *std::move(pairs), loss);
    if (!applied.ok()) return applied;
    return loss;
  }

  const std::vector<Variable>& variables() const { return variables_; }
  // Takes effect with the next Apply(). Has none under kParameterServer.
  //
  //   kInvalidArgument  `rate` is negative or not finite; nothing has changed
  absl::Status SetLearningRate(double rate);

  // TensorFlow's or PyTorch's names, sorted: "accumulator"; "m", "v".
  std::vector<std::string> SlotNames() const;
  // Returns the slot `key` of a variable; its name begins with the variable's,
  // as in "w/Momentum".
  //
  //   kNotFound       the optimizer has no such slot, or the variable has had
  //                   no gradient yet
  //   kUnimplemented  kParameterServer: the slots lie on the servers;
  //                   `lockstep export` writes those of a checkpoint
  absl::StatusOr<Variable> Slot(const Variable& variable,
                                std::string_view key) const;
  // State that belongs to no single variable: Adam's powers of beta1 and beta2,
  // after the first Apply().
  const std::vector<Variable>& NonSlots() const { return powers_; }
  // All variables of the optimizer in this process.
  std::vector<Variable> OwnVariables() const;

  // Creates the slots and the other state of all variables(), which otherwise
  // happens with the first gradient, so that a program can assign the values of
  // a checkpoint to them. All workers must call it. Has no effect under
  // kParameterServer. Errors: as Cross::Create().
  absl::Status MakeState();
  // The number of updates of a variable, which PyTorch's Adam needs to correct
  // its bias; 0 before the first gradient. A checkpoint must contain it.
  int64_t Updates(const Variable& variable) const;
  //   kInvalidArgument     `updates` is below 0
  //   kFailedPrecondition  the variable has no state yet
  absl::Status SetUpdates(const Variable& variable, int64_t updates);
  // The number of steps: each Apply() or Minimize() of all replicas is one.
  // AdagradDA needs it for its regularisation. A checkpoint must contain it.
  // Stays 0 under kParameterServer, whose servers count.
  int64_t Steps() const { return steps_; }
  //   kInvalidArgument  `steps` is below 0
  absl::Status SetSteps(int64_t steps);

  // The variables on the servers and the current pass; null unless the kind is
  // kParameterServer.
  ServedVariables* served() const { return served_.get(); }

 private:
  using All = PerReplica<std::vector<GradientAndVariable>>;
  // A variable with its reduced gradient.
  struct Reduced {
    Variable variable;
    AtVariable<Leaf> gradient;
  };

  TrainedBy(Strategy& strategy, const TrainedByOptions& options,
            std::vector<Variable> variables)
      : strategy_(strategy),
        options_(options),
        variables_(std::move(variables)) {}

  static absl::Status CheckOptions(const Strategy& strategy,
                                   const TrainedByOptions& options,
                                   const std::vector<Variable>& variables);
  absl::StatusOr<std::vector<GradientAndVariable>> Pair(
      LossAndGradients made, const std::optional<Value>& grad_loss) const;
  absl::Status Check(const All& all) const;
  absl::Status Apply(Replica& replica,
                     std::vector<GradientAndVariable> gradients, Value loss);
  absl::Status ApplyAll(Cross& cross, const All& all,
                        const PerReplica<Value>& losses);
  // Reduces the gradients of this process and hands them to the servers.
  absl::Status PushAll(const All& all, const PerReplica<Value>& losses);
  // The gradients of the local replicas for each variable that has some.
  struct GradientsByVariable {
    std::vector<ReducePair> pairs;  // with variables[i] as their target
    std::vector<Variable> variables;
  };
  static GradientsByVariable ByVariable(const All& all);
  absl::StatusOr<std::vector<Reduced>> ReduceAll(Cross& cross,
                                                 const All& all) const;
  // Creates slots and powers that are missing.
  absl::Status CreateState(Cross& cross, const std::vector<Variable>& trained);
  absl::Status UpdateVariable(Cross& cross, const Reduced& reduced);
  absl::Status UpdatePowers(Cross& cross);

  Strategy& strategy_;
  TrainedByOptions options_;
  const std::vector<Variable> variables_;
  struct State {
    Variable variable;
    std::vector<Variable> slots;  // in the order of server::Slots()
    int64_t updates = 0;
  };
  std::vector<State> states_;  // of variables with a gradient, or MakeState()
  std::vector<Variable> powers_;
  int64_t steps_ = 0;
  std::unique_ptr<ServedVariables> served_;
  const State* StateOf(const Variable& variable) const;
  State* StateOf(const Variable& variable);
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_TRAINED_BY_H_
