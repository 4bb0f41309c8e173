#include "worker/local/local_variables.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/collective/arithmetic.h"
#include "common/collective/element_type.h"
#include "common/job/field_checks.h"
#include "common/job/learning_rate.h"
#include "server/update/projection.h"

namespace lockstep::worker {
namespace {

size_t BytesOf(const VariableSpec& variable) {
  return static_cast<size_t>(NumElements(variable.shape)) *
         ElementSize(variable.dtype);
}

}  // namespace

LocalVariables::LocalVariables(const JobConfig& job, ParameterMemory memory)
    : memory_(std::move(memory)),
      steps_(job.local_steps),
      rates_(LearningRatesOf(job)) {
  // Index 0 is the rule of all variables without one of their own.
  rates_[0] = LocalLearningRateOf(job);
}

absl::StatusOr<LocalVariables> LocalVariables::Make(
    const JobConfig& job, const std::vector<VariableSpec>& variables) {
  // Reports mistakes of the job's own patterns under their own field, not under
  // "local".
  LOCKSTEP_RETURN_IF_ERROR(SettingsOf(job, variables).status());
  // The local rule replaces that of the servers, with its own patterns; without
  // local steps, variables have the rules of variable_optimizers.
  JobConfig own_job = job;
  own_job.optimizer = job.local.optimizer;
  own_job.local_steps = 1;
  own_job.local = {};
  const absl::StatusOr<std::vector<VariableSettings>> settings =
      SettingsOf(own_job, variables);
  if (!settings.ok()) return Within("local", settings.status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      ParameterMemory memory,
      ParameterMemory::Make(variables, ParameterMemory::Gradients::kPrivate));
  LocalVariables made(job, std::move(memory));
  const std::vector<OptimizerConfig> optimizers =
      OptimizersOf(own_job, variables);
  for (const OptimizerConfig& optimizer : optimizers) {
    made.optimizers_.emplace_back(optimizer);
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    Variable& own = made.variables_.emplace_back(
        Variable{.spec = variables[v], .settings = (*settings)[v]});
    for (server::SlotSpec& slot :
         server::Slots(optimizers[own.settings.optimizer])) {
      own.slots.push_back(
          {std::vector<std::byte>(BytesOf(variables[v])), std::move(slot)});
    }
  }
  return made;
}

void LocalVariables::Start(const ParameterMemory& shared, int64_t global_step) {
  global_step_ = global_step;
  done_ = 0;
  powers_.clear();
  for (const server::Optimizer& optimizer : optimizers_) {
    powers_.push_back(server::InitialAdamPowers(optimizer.config()));
  }
  for (size_t v = 0; v < variables_.size(); ++v) {
    const absl::Span<const std::byte> value = shared.value(v);
    std::copy(value.begin(), value.end(), memory_.value(v).begin());
    for (Slot& slot : variables_[v].slots) {
      if (slot.spec.starts_as_value) {
        std::copy(value.begin(), value.end(), slot.memory.begin());
      } else {
        server::FillElements(variables_[v].spec.dtype, slot.spec.initial_value,
                             absl::MakeSpan(slot.memory));
      }
    }
  }
}

double LocalVariables::RateOf(const Variable& variable) const {
  // A buffer's gradient is its change, taken whole.
  if (variable.spec.buffer) return 1;
  const auto index = static_cast<size_t>(variable.settings.optimizer);
  // A schedule of the local rule counts local steps over the whole job; that of
  // a variable's own rule counts global steps, as on the servers.
  const int64_t step =
      index == 0 ? global_step_ * steps_ + done_ : global_step_;
  return LearningRate(rates_[index], step);
}

absl::Status LocalVariables::Step() {
  for (size_t v = 0; v < variables_.size(); ++v) {
    Variable& variable = variables_[v];
    if (!IsUpdated(variable)) continue;
    const auto index = static_cast<size_t>(variable.settings.optimizer);
    const absl::Span<std::byte> value = memory_.value(v);
    const absl::Span<std::byte> gradient = memory_.gradient(v);
    const server::ByteSlice slice{gradient.data(), gradient.size()};
    const server::GradientSlices one{absl::MakeConstSpan(&slice, 1)};
    server::ApplyInput input;
    input.dtype = variable.spec.dtype;
    input.learning_rate = RateOf(variable);
    input.powers = powers_[index];
    input.updates = done_;
    input.decays = variable.settings.decays;
    input.step = done_;
    input.gradients = absl::MakeConstSpan(&one, 1);
    input.old_value = value;
    // In place, unlike on a server, where readers may still have the old value.
    input.new_value = value;
    for (size_t s = 0; s < variable.slots.size(); ++s) {
      input.old_slots[s] = variable.slots[s].memory;
      input.new_slots[s] = absl::MakeSpan(variable.slots[s].memory);
    }
    LOCKSTEP_RETURN_IF_ERROR(optimizers_[index].Apply(input));
    server::Project(variable.settings.constraint, variable.spec.dtype,
                    server::RowElements(variable.spec), value);
  }
  for (size_t i = 0; i < powers_.size(); ++i) {
    powers_[i] = server::NextAdamPowers(optimizers_[i].config(), powers_[i]);
  }
  ++done_;
  return absl::OkStatus();
}

void LocalVariables::WriteDifference(size_t variable,
                                     const ParameterMemory& shared) const {
  const absl::Span<const std::byte> before = shared.value(variable);
  const absl::Span<const std::byte> after = memory_.value(variable);
  const absl::Span<std::byte> out = shared.gradient(variable);
  // Combine() works in place, so the gradient first holds the value before.
  std::copy(before.begin(), before.end(), out.begin());
  const DType dtype = shared.dtype(variable);
  Combine(ElementTypeOf(dtype), Arithmetic::kSubtract,
          out.size() / ElementSize(dtype), out.data(), after.data());
}

std::vector<absl::Span<std::byte>> LocalVariables::ClippedGradients() const {
  std::vector<absl::Span<std::byte>> spans;
  for (size_t v = 0; v < variables_.size(); ++v) {
    const bool clipped =
        variables_[v].settings.trained && !variables_[v].spec.buffer;
    spans.push_back(clipped ? memory_.gradient(v) : absl::Span<std::byte>());
  }
  return spans;
}

}  // namespace lockstep::worker
