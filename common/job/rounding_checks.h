#ifndef LOCKSTEP_COMMON_JOB_ROUNDING_CHECKS_H_
#define LOCKSTEP_COMMON_JOB_ROUNDING_CHECKS_H_

#include <vector>

#include "absl/status/status.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"

namespace lockstep {

// Updates are computed in the type of the variables, or in float32: a number
// of a job that is in range may be 0, 1 or infinite there. A share of 1 makes
// a mean stand still or divides by 0, a rate of 0 trains nothing, and an
// epsilon of 0 divides by 0 where all gradients of an element have been 0.

// Checks the rates of `rule` that do not change with the step.
//
//   kInvalidArgument  a rate is 0 or infinite in updates of variables of
//                     `type`; names the field, such as "learning_rate"
absl::Status CheckRates(const OptimizerConfig& rule,
                        const LearningRateConfig& rate, DType type);

// As CheckRates(), and checks the numbers that `rule` uses. All must be in the
// range of their field.
//
//   kInvalidArgument  a number becomes another one in updates of variables of
//                     `type`; names the field, such as "optimizer.beta1"
absl::Status CheckRounding(const OptimizerConfig& rule,
                           const LearningRateConfig& rate, DType type);

// Checks the limit of clipping for gradients of `type`.
//
//   kInvalidArgument  it becomes another number where they are limited; names
//                     "clipping.limit"
absl::Status CheckClippingLimit(const ClippingConfig& clipping, DType type);

// Checks the numbers of all optimizers of a job, of its moving averages and of
// its clipping, with model.variable_type. Leaves out the limit of clipping if
// the model is a program's, whose variables may have other types.
//
//   kInvalidArgument  as above
absl::Status CheckRoundings(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_ROUNDING_CHECKS_H_
