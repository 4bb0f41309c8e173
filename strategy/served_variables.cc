#include "strategy/served_variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {

std::vector<JobVariable> ServedVariables::Describe(
    const VariableStore& store, const std::vector<Variable>& variables) {
  std::vector<JobVariable> described;
  for (const Variable& variable : variables) {
    static_assert(static_cast<int>(DType::kFloat16) ==
                      static_cast<int>(ElementType::kFloat16) &&
                  static_cast<int>(DType::kFloat32) ==
                      static_cast<int>(ElementType::kFloat32) &&
                  static_cast<int>(DType::kFloat64) ==
                      static_cast<int>(ElementType::kFloat64) &&
                  static_cast<int>(DType::kBFloat16) ==
                      static_cast<int>(ElementType::kBFloat16));
    described.push_back({variable.name(), variable.shape(),
                         static_cast<DType>(variable.type()),
                         store.ReadCopy(variable, 0).bytes()});
  }
  return described;
}

absl::StatusOr<std::unique_ptr<ServedVariables>> ServedVariables::Begin(
    VariableStore& store, const std::vector<Variable>& variables,
    std::unique_ptr<TrainingJob> job, std::function<absl::Status()> group) {
  auto served = std::unique_ptr<ServedVariables>(
      new ServedVariables(store, variables, std::move(job), std::move(group)));
  LOCKSTEP_RETURN_IF_ERROR(served->TakeNext());
  // Last: after an error the strategy itself may still write the variables.
  if (!served->pass_.has_value()) return served;
  for (const Variable& variable : variables) store.Serve(variable);
  return served;
}

ServedVariables::~ServedVariables() { EndServing(); }

void ServedVariables::EndServing() const {
  for (const Variable& variable : variables_) store_.EndServing(variable);
}

absl::Status ServedVariables::TakeNext() {
  // An error leaves no pass: the copies may then hold values of two steps, to
  // which no gradient belongs.
  pass_.reset();
  LOCKSTEP_ASSIGN_OR_RETURN(pass_, job_->Next(group_));
  // At the end the last pass may be older than the last step, which a worker
  // whose pass came too late has not computed.
  if (!pass_.has_value() && !job_->has_last_values()) {
    EndServing();
    return absl::OkStatus();
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(store_.WriteServed(variables_[i], job_->value(i)));
  }
  // The program may now write the values of a checkpoint, to evaluate it.
  if (!pass_.has_value()) EndServing();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::optional<Leaf>>> ServedVariables::InOrder(
    std::vector<std::pair<Variable, Leaf>> gradients) const {
  std::vector<std::optional<Leaf>> ordered(variables_.size());
  for (auto& [variable, gradient] : gradients) {
    const auto found =
        std::find(variables_.begin(), variables_.end(), variable);
    if (found == variables_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable \"", variable.name(),
                       "\" is not on the servers; name it to "
                       "TrainedBy::Make()"));
    }
    std::optional<Leaf>& place =
        ordered[static_cast<size_t>(found - variables_.begin())];
    if (place.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable \"", variable.name(),
                       "\" has two gradients, but servers take one of each "
                       "worker; add them up"));
    }
    place = std::move(gradient);
  }
  return ordered;
}

absl::Status ServedVariables::Push(
    const std::vector<std::optional<Leaf>>& gradients, double loss) {
  if (!pass_.has_value()) {
    return absl::OutOfRangeError("training is over: the job takes no gradient");
  }
  std::vector<std::optional<Value>> dense(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].has_value()) continue;
    const Value* value = std::get_if<Value>(&*gradients[i]);
    if (value == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the gradient of \"", variables_[i].name(), "\" is ",
          DescriptionOf(*gradients[i]),
          ", but servers take rows for tables alone; hand in a dense one"));
    }
    dense[i] = *value;
  }
  const absl::Status pushed = job_->Push(dense, loss);
  if (absl::IsAborted(pushed)) {
    ++dropped_;  // the step is closed without this pass
  } else if (!pushed.ok()) {
    return pushed;
  }
  return TakeNext();
}

absl::StatusOr<std::vector<int64_t>> ServedVariables::Examples(
    int64_t num_examples) {
  if (!pass_.has_value()) {
    return absl::OutOfRangeError("training is over: there is no pass");
  }
  absl::StatusOr<std::vector<int64_t>> rows =
      job_->Examples(num_examples, pass_->batch);
  if (absl::IsOutOfRange(rows.status())) {
    // A process that starts after the job's epochs learns of their end here.
    job_->EndInput();
    LOCKSTEP_RETURN_IF_ERROR(TakeNext());
  }
  return rows;
}

}  // namespace lockstep::strategy
