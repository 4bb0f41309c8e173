#include "common/job/codec/variable_settings_codec.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/codec/training_config_codec.h"

namespace lockstep {
namespace {

using Kind = VariableConstraint::Kind;

v1::VariableOptimizer ToProto(const VariableOptimizer& other) {
  v1::VariableOptimizer proto;
  proto.set_variables(other.variables);
  *proto.mutable_optimizer() = lockstep::ToProto(other.optimizer);
  if (other.learning_rate.has_value()) {
    proto.set_learning_rate(*other.learning_rate);
  }
  if (other.schedule.has_value()) {
    *proto.mutable_learning_rate_schedule() =
        lockstep::ToProto(*other.schedule);
  }
  return proto;
}

absl::StatusOr<VariableOptimizer> FromProto(
    const v1::VariableOptimizer& proto) {
  VariableOptimizer other;
  other.variables = proto.variables();
  LOCKSTEP_ASSIGN_OR_RETURN(other.optimizer,
                            lockstep::FromProto(proto.optimizer()));
  if (proto.has_learning_rate()) other.learning_rate = proto.learning_rate();
  if (proto.has_learning_rate_schedule()) {
    LOCKSTEP_RETURN_IF_ERROR(
        ReadSchedule(proto.learning_rate_schedule(), other.schedule.emplace()));
  }
  return other;
}

absl::StatusOr<VariableConstraint> FromProto(
    const v1::VariableConstraint& proto) {
  const int kind = proto.kind();
  // VariableConstraint::Kind and its message have the same numbers.
  if (kind < 0 || kind > static_cast<int>(Kind::kMaxNorm)) {
    return absl::InvalidArgumentError(
        absl::StrCat("constraints.kind is the number ", kind,
                     ", which has no name in this version"));
  }
  return VariableConstraint{proto.variables(), static_cast<Kind>(kind),
                            proto.max_norm()};
}

}  // namespace

void WriteVariableSettings(const JobConfig& job, v1::JobConfig& proto) {
  for (const VariableOptimizer& other : job.variable_optimizers) {
    *proto.add_variable_optimizers() = ToProto(other);
  }
  v1::MovingAverageConfig& average = *proto.mutable_moving_average();
  average.set_decay(job.moving_average.decay);
  average.set_count_steps(job.moving_average.count_steps);
  for (const std::string& pattern : job.moving_average.variables) {
    average.add_variables(pattern);
  }
  average.set_evaluate(job.moving_average.evaluate);
  for (const VariableConstraint& constraint : job.constraints) {
    v1::VariableConstraint& added = *proto.add_constraints();
    added.set_variables(constraint.variables);
    added.set_kind(static_cast<v1::VariableConstraint::Kind>(constraint.kind));
    added.set_max_norm(constraint.max_norm);
  }
  proto.mutable_untrained()->Add(job.untrained.begin(), job.untrained.end());
}

absl::Status ReadVariableSettings(const v1::JobConfig& proto, JobConfig& job) {
  for (const v1::VariableOptimizer& other : proto.variable_optimizers()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableOptimizer read, FromProto(other));
    job.variable_optimizers.push_back(std::move(read));
  }
  const v1::MovingAverageConfig& average = proto.moving_average();
  job.moving_average.decay = average.decay();
  job.moving_average.count_steps = average.count_steps();
  job.moving_average.variables.assign(average.variables().begin(),
                                      average.variables().end());
  if (average.has_evaluate()) job.moving_average.evaluate = average.evaluate();
  for (const v1::VariableConstraint& constraint : proto.constraints()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableConstraint read, FromProto(constraint));
    job.constraints.push_back(std::move(read));
  }
  job.untrained.assign(proto.untrained().begin(), proto.untrained().end());
  return absl::OkStatus();
}

}  // namespace lockstep
