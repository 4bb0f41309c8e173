#ifndef LOCKSTEP_CHIEF_PLACEMENT_H_
#define LOCKSTEP_CHIEF_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "common/plan.h"

namespace lockstep {

// Cuts variables into parts of at most `max_part_bytes` and spreads them over
// `num_servers`, each part to the server that has the fewest bytes so far, the
// lowest index among equals (TensorFlow's greedy strategy by bytes, per part).
//
//   kInvalidArgument  no server, no variable, two of one name, an empty name,
//                     an unknown dtype, a dimension below 1, more than 2^56
//                     elements or 2^22 parts in all, or a part limit smaller
//                     than an element
absl::StatusOr<Plan> MakePlan(const std::vector<VariableSpec>& variables,
                              int num_servers, int64_t max_part_bytes);

// Whether gradients of all variables can be written as the job says.
//
//   kInvalidArgument  names the first variable of which they cannot
absl::Status CheckGradientType(const std::vector<VariableSpec>& variables,
                               GradientType gradient_wire_type);

}  // namespace lockstep

#endif  // LOCKSTEP_CHIEF_PLACEMENT_H_
