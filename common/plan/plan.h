#ifndef LOCKSTEP_COMMON_PLAN_PLAN_H_
#define LOCKSTEP_COMMON_PLAN_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/part.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// Plan lists a job's variables and the location of every part. Parts are
// ordered by variable, then by first element; a server's indices ascend in that
// order too.
struct Plan {
  std::vector<VariableSpec> variables;
  std::vector<Part> parts;
  // Every server holds all parts. A part's `server` is the one that sums its
  // gradients, and may change while a job runs; its `index` counts all parts
  // and does not.
  bool mirrored = false;
};

// Returns the parts that a server holds, by index.
std::vector<Part> PartsOf(const Plan& plan, int server);

// Checks that a plan matches the model that this worker has described, so that
// buffers of the plan's sizes hold the model's variables. Also checks that the
// parts cover each variable: for a table, that they have as many elements in
// all; for other variables, that they have each element exactly once.
//
//   kInvalidArgument  names the first difference
absl::Status CheckPlan(const Plan& plan,
                       const std::vector<VariableSpec>& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PLAN_H_
