#ifndef LOCKSTEP_COMMON_MEMBERSHIP_INITIAL_VALUES_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_INITIAL_VALUES_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/membership/chief_client.h"
#include "common/membership/coordinator_calls.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// Sends the values of all variables of `model` with initializer kGiven to the
// chief, block by block, and repeats each block until it is answered. Returns
// kOk also if the chief does not want them any more: another worker provides
// them, or another chief runs the job. Private to common/membership.
//
//   kCancelled  `is_over` returned true
//   and the errors of `values` and of CoordinatorService
absl::Status SendInitialValues(CoordinatorCalls& calls,
                               const v1::Identity& identity,
                               const std::vector<VariableSpec>& model,
                               const ChiefClient::InitialValues& values,
                               absl::FunctionRef<bool()> is_over);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_INITIAL_VALUES_H_
