#include "common/job/codec/variable_settings_codec.h"

#include "common/job/codec/training_config_codec.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep {
namespace {

using Kind = VariableConstraint::Kind;
constexpr EnumValue<Kind> kConstraints[] = {
    {Kind::kUnspecified, v1::VariableConstraint::KIND_UNSPECIFIED},
    {Kind::kNonNegative, v1::VariableConstraint::NON_NEGATIVE},
    {Kind::kMaxNorm, v1::VariableConstraint::MAX_NORM}};

}  // namespace

void VisitFields(FieldVisitor& visit, VariableOptimizer& other) {
  visit("variables", other.variables);
  visit("optimizer", other.optimizer);
  visit("learning_rate", other.learning_rate);
  visit("learning_rate_schedule", other.schedule);
}

void VisitFields(FieldVisitor& visit, MovingAverageConfig& average) {
  visit("decay", average.decay);
  visit("count_steps", average.count_steps);
  visit("variables", average.variables);
  visit("evaluate", average.evaluate);
}

void VisitFields(FieldVisitor& visit, VariableConstraint& constraint) {
  visit("variables", constraint.variables);
  visit("kind", constraint.kind, kConstraints);
  visit("max_norm", constraint.max_norm);
}

}  // namespace lockstep
