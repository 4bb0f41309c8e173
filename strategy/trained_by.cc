#include "strategy/trained_by.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/training_checks.h"
#include "common/job/variable_settings.h"
#include "common/text/count_text.h"
#include "server/update/optimizer.h"
#include "server/update/slots.h"
#include "server/update/sparse_optimizer.h"
#include "strategy/gradients.h"

namespace lockstep::strategy {
namespace {

// DType and ElementType number the floating-point types alike.
DType DTypeOf(ElementType type) { return static_cast<DType>(type); }

// Whether the optimizer's weight decay applies to the variable.
bool Decays(const OptimizerConfig& optimizer, const Variable& variable) {
  const std::vector<std::string>& exempt = optimizer.weight_decay_exempt;
  return std::none_of(exempt.begin(), exempt.end(),
                      [&](const std::string& pattern) {
                        return MatchesVariable(pattern, variable.name());
                      });
}

// For the job's status, which shows scalars of floating-point numbers. Returns
// 0 for all else: a loss that cannot be shown must not end training.
double LossOf(const Value& loss) {
  if (loss.size() != 1) return 0;
  if (loss.type() == ElementType::kFloat32) return loss.Elements<float>()[0];
  return loss.type() == ElementType::kFloat64 ? loss.Elements<double>()[0] : 0;
}

absl::Status CheckLearningRate(double rate) {
  if (std::isfinite(rate) && rate >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "learning_rate is ", rate, ", must be a finite number of 0 or more"));
}

float ScalarOf(const Value& value) { return value.Elements<float>()[0]; }

absl::Status ApplyDense(const server::Optimizer& optimizer,
                        server::ApplyInput& input, const Value& gradient) {
  const server::ByteSlice bytes{gradient.bytes().data(),
                                gradient.bytes().size()};
  // The replicas' gradients are one already, so the optimizer sees a single
  // worker.
  const server::GradientSlices slices{{&bytes, 1}, GradientType::kVariable};
  input.gradients = {&slices, 1};
  return optimizer.Apply(input);
}

}  // namespace

OptimizerConfig OptimizerOf(OptimizerConfig::Kind kind) {
  OptimizerConfig optimizer;
  optimizer.kind = kind;
  optimizer.momentum = DefaultMomentum(kind);
  optimizer.epsilon = DefaultEpsilon(kind);
  optimizer.weight_decay = DefaultWeightDecay(kind);
  return optimizer;
}

absl::Status TrainedBy::CheckOptions(const Strategy& strategy,
                                     const TrainedByOptions& options,
                                     const std::vector<Variable>& variables) {
  LOCKSTEP_RETURN_IF_ERROR(options.communication.Validate());
  const bool served = strategy.kind() == Kind::kParameterServer;
  if (served && options.reduce != ReduceOp::kMean) {
    return absl::InvalidArgumentError(
        "reduce is kSum, but servers take the mean over the workers; use kMean "
        "and losses that are means");
  }
  if (!served) {
    LOCKSTEP_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
    LOCKSTEP_RETURN_IF_ERROR(CheckLearningRate(options.learning_rate));
  }
  std::set<std::string> names;
  for (const Variable& variable : variables) {
    // Slots are named after their variable.
    if (!names.insert(variable.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two variables have the name \"", variable.name(),
          "\"; name each once, and give different variables different names"));
    }
    if (!strategy.Owns(variable) || !variable.trainable() ||
        !IsFloatingPoint(variable.type())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name(),
          "\" must be a trainable one of this strategy, of floating-point "
          "numbers"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TrainedBy>> TrainedBy::Make(
    Strategy& strategy, const TrainedByOptions& options,
    std::vector<Variable> variables) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(strategy, options, variables));
  if (strategy.kind() == Kind::kParameterServer) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::unique_ptr<TrainingJob> job,
        JoinJob(options.job, ServedVariables::Describe(
                                 strategy.engine_.variables(), variables)));
    return Make(strategy, options, std::move(variables), std::move(job));
  }
  return std::unique_ptr<TrainedBy>(
      new TrainedBy(strategy, options, std::move(variables)));
}

absl::StatusOr<std::unique_ptr<TrainedBy>> TrainedBy::Make(
    Strategy& strategy, const TrainedByOptions& options,
    std::vector<Variable> variables, std::unique_ptr<TrainingJob> job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(strategy, options, variables));
  if (strategy.kind() != Kind::kParameterServer || job == nullptr) {
    return absl::InvalidArgumentError(
        "a job with servers is for kParameterServer, and must be there");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ServedVariables> served,
      ServedVariables::Begin(
          strategy.engine_.variables(), variables, std::move(job),
          [&engine = strategy.engine_] { return engine.group().Ended(); }));
  auto made = std::unique_ptr<TrainedBy>(
      new TrainedBy(strategy, options, std::move(variables)));
  made->served_ = std::move(served);
  return made;
}

absl::Status TrainedBy::SetLearningRate(double rate) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLearningRate(rate));
  options_.learning_rate = rate;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<GradientAndVariable>> TrainedBy::Pair(
    LossAndGradients made, const std::optional<Value>& grad_loss) const {
  if (made.gradients.size() != variables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a pass has ",
        CountText(static_cast<int64_t>(made.gradients.size()), "gradient"),
        " for ",
        CountText(static_cast<int64_t>(variables_.size()), "variable")));
  }
  std::vector<GradientAndVariable> pairs;
  for (size_t i = 0; i < variables_.size(); ++i) {
    std::optional<Leaf>& gradient = made.gradients[i];
    if (gradient.has_value() && grad_loss.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(
          MultiplyBy(*grad_loss, variables_[i].name(), *gradient));
    }
    pairs.push_back({std::move(gradient), variables_[i]});
  }
  return pairs;
}

absl::Status TrainedBy::Check(const All& all) const {
  const std::vector<GradientAndVariable>& first = all.At(0);
  bool any = false;
  for (const std::vector<GradientAndVariable>& mine : all.local()) {
    if (mine.size() != first.size()) {
      return absl::InvalidArgumentError(
          "all replicas must give the same number of gradients");
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      if (!(mine[i].variable == first[i].variable) ||
          mine[i].gradient.has_value() != first[i].gradient.has_value() ||
          (mine[i].gradient.has_value() &&
           mine[i].gradient->index() != first[i].gradient->index())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "gradient ", i, " of \"", first[i].variable.name(),
            "\": all replicas must give the same variables, and the same "
            "gradients dense, sparse or absent"));
      }
      if (!mine[i].gradient.has_value()) continue;
      any = true;
      LOCKSTEP_RETURN_IF_ERROR(
          strategy_.engine_.variables().CheckOwner(mine[i].variable));
      if (!IsFloatingPoint(mine[i].variable.type())) {
        return absl::InvalidArgumentError(absl::StrCat(
            "variable \"", mine[i].variable.name(), "\" is of ",
            std::string(NameOf(mine[i].variable.type())),
            ", but a variable that is trained must be of floating-point "
            "numbers"));
      }
      LOCKSTEP_RETURN_IF_ERROR(
          CheckGradient(*mine[i].gradient, mine[i].variable));
      const bool dense = std::holds_alternative<Value>(*mine[i].gradient);
      if (dense || served_ != nullptr) continue;
      LOCKSTEP_RETURN_IF_ERROR(server::SparseOptimizer(options_.optimizer)
                                   .CheckRate(DTypeOf(mine[i].variable.type()),
                                              options_.learning_rate));
    }
  }
  if (any) return absl::OkStatus();
  return absl::InvalidArgumentError("no variable has a gradient");
}

absl::Status TrainedBy::Apply(Replica& replica,
                              std::vector<GradientAndVariable> gradients) {
  return Apply(replica, std::move(gradients), Value::Scalar(0));
}

absl::Status TrainedBy::Apply(Replica& replica,
                              std::vector<GradientAndVariable> gradients,
                              Value loss) {
  return replica.Merge(
      [this](Cross& cross, const All& all, const PerReplica<Value>& losses) {
        return ApplyAll(cross, all, losses);
      },
      std::move(gradients), std::move(loss));
}

absl::Status TrainedBy::ApplyAll(Cross& cross, const All& all,
                                 const PerReplica<Value>& losses) {
  if (served_ != nullptr) return PushAll(all, losses);
  LOCKSTEP_RETURN_IF_ERROR(strategy_.engine_.group().TellIfRefused(
      "Apply()", Check(all), options_.communication));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Reduced> reduced,
                            ReduceAll(cross, all));
  std::vector<Variable> trained;
  for (const Reduced& each : reduced) trained.push_back(each.variable);
  // After the reduction, so that its errors leave no state behind.
  LOCKSTEP_RETURN_IF_ERROR(CreateState(cross, trained));
  for (const Reduced& each : reduced) {
    LOCKSTEP_RETURN_IF_ERROR(UpdateVariable(cross, each));
  }
  // Last, once a step: all variables of a step use the same powers, as in
  // TensorFlow.
  LOCKSTEP_RETURN_IF_ERROR(UpdatePowers(cross));
  ++steps_;
  return absl::OkStatus();
}

absl::Status TrainedBy::PushAll(const All& all,
                                const PerReplica<Value>& losses) {
  LOCKSTEP_RETURN_IF_ERROR(Check(all));
  const GradientsByVariable gradients_of = ByVariable(all);
  std::vector<Distributed> values;
  for (const ReducePair& pair : gradients_of.pairs) {
    values.push_back(ToDistributed(pair.value));
  }
  // The servers reduce what the workers hand in, also where these form a group.
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<Leaf> reduced,
      strategy_.engine_.own().Reduce(options_.reduce, Toward::kAll, values,
                                     options_.communication));
  std::vector<std::pair<Variable, Leaf>> pairs;
  for (size_t i = 0; i < reduced.size(); ++i) {
    pairs.emplace_back(gradients_of.variables[i], std::move(reduced[i]));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto gradients,
                            served_->InOrder(std::move(pairs)));
  double loss = 0;
  for (const Value& mine : losses.local()) loss += LossOf(mine);
  return served_->Push(gradients,
                       loss / static_cast<double>(losses.local().size()));
}

TrainedBy::GradientsByVariable TrainedBy::ByVariable(const All& all) {
  GradientsByVariable gradients;
  for (size_t i = 0; i < all.At(0).size(); ++i) {
    if (!all.At(0)[i].gradient.has_value()) continue;
    std::vector<Leaf> leaves;
    for (const std::vector<GradientAndVariable>& mine : all.local()) {
      leaves.push_back(*mine[i].gradient);
    }
    gradients.variables.push_back(all.At(0)[i].variable);
    gradients.pairs.push_back(
        {PerReplica<Leaf>(std::move(leaves), all.first_replica()),
         gradients.variables.back()});
  }
  return gradients;
}

absl::StatusOr<std::vector<TrainedBy::Reduced>> TrainedBy::ReduceAll(
    Cross& cross, const All& all) const {
  const GradientsByVariable gradients = ByVariable(all);
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto values, cross.BatchReduceTo(options_.reduce, gradients.pairs,
                                       options_.communication));
  std::vector<Reduced> reduced;
  for (size_t i = 0; i < values.size(); ++i) {
    reduced.push_back({gradients.variables[i], std::move(values[i])});
  }
  return reduced;
}

const TrainedBy::State* TrainedBy::StateOf(const Variable& variable) const {
  for (const State& state : states_) {
    if (state.variable == variable) return &state;
  }
  return nullptr;
}

TrainedBy::State* TrainedBy::StateOf(const Variable& variable) {
  return const_cast<State*>(std::as_const(*this).StateOf(variable));
}

absl::Status TrainedBy::MakeState() {
  if (served_ != nullptr) return absl::OkStatus();
  return strategy_.Across(
      [&](Cross& cross) { return CreateState(cross, variables_); });
}

int64_t TrainedBy::Updates(const Variable& variable) const {
  const State* const state = StateOf(variable);
  return state == nullptr ? 0 : state->updates;
}

absl::Status TrainedBy::SetUpdates(const Variable& variable, int64_t updates) {
  if (updates < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates is ", updates, ", but must be at least 0"));
  }
  State* const state = StateOf(variable);
  if (state == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("variable \"", variable.name(),
                     "\" has no state of the optimizer yet; call MakeState()"));
  }
  state->updates = updates;
  return absl::OkStatus();
}

absl::Status TrainedBy::SetSteps(int64_t steps) {
  if (steps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps is ", steps, ", but must be at least 0"));
  }
  steps_ = steps;
  return absl::OkStatus();
}

absl::Status TrainedBy::CreateState(Cross& cross,
                                    const std::vector<Variable>& trained) {
  for (const Variable& variable : trained) {
    if (StateOf(variable) != nullptr) continue;
    State state{variable, {}, 0};
    for (const server::SlotSpec& spec : server::Slots(options_.optimizer)) {
      VariableOptions options;
      options.name = TensorNameOf(variable.name(), spec.name);
      options.trainable = false;
      options.colocate_with = variable;
      options.initializer = [&]() -> absl::StatusOr<Value> {
        // The average of a variable starts as its value.
        if (spec.starts_as_value) return cross.Read(variable);
        LOCKSTEP_ASSIGN_OR_RETURN(
            Value initial, Value::Zeros(variable.type(), variable.shape()));
        server::FillElements(DTypeOf(variable.type()), spec.initial_value,
                             initial.mutable_bytes());
        return initial;
      };
      LOCKSTEP_ASSIGN_OR_RETURN(Variable slot, cross.Create(options));
      state.slots.push_back(std::move(slot));
    }
    states_.push_back(std::move(state));
  }
  if (!server::HasAdamPowers(options_.optimizer) || !powers_.empty()) {
    return absl::OkStatus();
  }
  const server::AdamPowers initial =
      server::InitialAdamPowers(options_.optimizer);
  LOCKSTEP_ASSIGN_OR_RETURN(const Placement placement,
                            cross.NonSlotPlacement(trained));
  // Kept once both exist, so that an error leaves none.
  std::vector<Variable> powers;
  for (const auto& [name, power] :
       {std::pair{"beta1_power", initial.beta1_power},
        std::pair{"beta2_power", initial.beta2_power}}) {
    VariableOptions options;
    options.name = name;
    options.trainable = false;
    options.colocate_with = placement;
    options.initializer = Starting(Value::Scalar(power));
    LOCKSTEP_ASSIGN_OR_RETURN(Variable made, cross.Create(options));
    powers.push_back(std::move(made));
  }
  powers_ = std::move(powers);
  return absl::OkStatus();
}

absl::Status TrainedBy::UpdateVariable(Cross& cross, const Reduced& reduced) {
  State& state = *StateOf(reduced.variable);
  server::AdamPowers powers;
  if (!powers_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Value beta1, cross.Read(powers_[0]));
    LOCKSTEP_ASSIGN_OR_RETURN(const Value beta2, cross.Read(powers_[1]));
    powers = {ScalarOf(beta1), ScalarOf(beta2)};
  }
  const auto update = [&](Copy& copy, const Leaf& gradient) -> absl::Status {
    const absl::Span<std::byte> value = copy.MutableBytes(reduced.variable);
    // Optimizers refuse a value without elements, which has nothing to update.
    if (value.empty()) return absl::OkStatus();
    if (const Value* dense = std::get_if<Value>(&gradient)) {
      server::ApplyInput input;
      input.dtype = DTypeOf(reduced.variable.type());
      input.learning_rate = options_.learning_rate;
      input.powers = powers;
      input.updates = state.updates;
      input.decays = Decays(options_.optimizer, reduced.variable);
      input.step = steps_;
      // In place, which ApplyInput allows; nothing reads the old state again.
      input.old_value = input.new_value = value;
      for (size_t i = 0; i < state.slots.size(); ++i) {
        input.new_slots[i] = copy.MutableBytes(state.slots[i]);
        input.old_slots[i] = input.new_slots[i];
      }
      return ApplyDense(server::Optimizer(options_.optimizer), input, *dense);
    }
    const Slices& slices = std::get<Slices>(gradient);
    server::SparseApplyInput input;
    input.dtype = DTypeOf(reduced.variable.type());
    input.learning_rate = options_.learning_rate;
    input.powers = powers;
    input.updates = state.updates;
    input.decays = Decays(options_.optimizer, reduced.variable);
    input.step = steps_;
    input.indices = slices.indices;
    input.values_shape = slices.values.shape();
    input.values = slices.values.bytes();
    input.shape = reduced.variable.shape();
    input.value = value;
    for (size_t i = 0; i < state.slots.size(); ++i) {
      input.slots[i] = copy.MutableBytes(state.slots[i]);
    }
    return server::SparseOptimizer(options_.optimizer).Apply(input);
  };
  LOCKSTEP_RETURN_IF_ERROR(
      cross.Update(reduced.variable, update, reduced.gradient));
  // Once a step, and not once for each copy.
  ++state.updates;
  return absl::OkStatus();
}

absl::Status TrainedBy::UpdatePowers(Cross& cross) {
  if (powers_.empty()) return absl::OkStatus();
  return cross.UpdateNonSlot(
      powers_[0].placement(), [this](Place& place) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const Value beta1, place.Read(powers_[0]));
        LOCKSTEP_ASSIGN_OR_RETURN(const Value beta2, place.Read(powers_[1]));
        const server::AdamPowers next = server::NextAdamPowers(
            options_.optimizer, {ScalarOf(beta1), ScalarOf(beta2)});
        LOCKSTEP_RETURN_IF_ERROR(
            place.Assign(powers_[0], Value::Scalar(next.beta1_power)));
        return place.Assign(powers_[1], Value::Scalar(next.beta2_power));
      });
}

std::vector<std::string> TrainedBy::SlotNames() const {
  std::vector<std::string> names;
  for (const server::SlotSpec& spec : server::Slots(options_.optimizer)) {
    names.push_back(spec.key);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Variable> TrainedBy::Slot(const Variable& variable,
                                         std::string_view key) const {
  if (served_ != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the slots of \"", variable.name(),
                     "\" lie on the job's servers; `lockstep export` writes "
                     "those of a checkpoint"));
  }
  const std::vector<server::SlotSpec> specs = server::Slots(options_.optimizer);
  const State* const state = StateOf(variable);
  for (size_t i = 0; state != nullptr && i < specs.size(); ++i) {
    if (specs[i].key == key) return state->slots[i];
  }
  return absl::NotFoundError(absl::StrCat(
      "variable \"", variable.name(), "\" has no slot \"", std::string(key),
      "\"; slots are made with the first gradient"));
}

std::vector<Variable> TrainedBy::OwnVariables() const {
  std::vector<Variable> own;
  for (const State& state : states_) {
    own.insert(own.end(), state.slots.begin(), state.slots.end());
  }
  own.insert(own.end(), powers_.begin(), powers_.end());
  return own;
}

}  // namespace lockstep::strategy
