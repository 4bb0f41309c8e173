#ifndef LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_

#include "common/job/codec/field_list_codec.h"
#include "common/job/job_config.h"

// Lists of the fields of a job's settings for variables by name.
namespace lockstep {

void VisitFields(FieldVisitor& visit, VariableOptimizer& other);
void VisitFields(FieldVisitor& visit, MovingAverageConfig& average);
void VisitFields(FieldVisitor& visit, VariableConstraint& constraint);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_VARIABLE_SETTINGS_CODEC_H_
