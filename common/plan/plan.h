#ifndef LOCKSTEP_COMMON_PLAN_PLAN_H_
#define LOCKSTEP_COMMON_PLAN_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/variable_spec.h"

namespace lockstep {

// PlannedPart is a slice of a variable and the server that holds it.
//
// Units: offset and count are elements of the flattened variable.
struct PlannedPart {
  int variable = 0;  // index in Plan::variables
  int64_t offset = 0;
  int64_t count = 0;
  int server = 0;  // index of the ps task
  int index = 0;   // among the parts of that server, from 0
  // Distance from one row of the part to its next, in rows of the table; above
  // 1 where a table is cut by RowCut::kMod. `offset` is that of the first row.
  // For a growing table: the number of parts, and `offset` counts parts.
  int64_t row_stride = 1;

  bool operator==(const PlannedPart&) const = default;
};

// Plan lists a job's variables and the location of every part. Parts are
// ordered by variable, then by first element; a server's indices ascend in that
// order too.
struct Plan {
  std::vector<VariableSpec> variables;
  std::vector<PlannedPart> parts;
  // Every server holds all parts. A part's `server` is the one that sums its
  // gradients, and its `index` counts the parts of all servers, those of server
  // 0 first.
  bool mirrored = false;
};

// The parts that a server holds, by index.
std::vector<PlannedPart> PartsOf(const Plan& plan, int server);

// Checks that a plan matches the model that this worker has described, so that
// buffers of the plan's sizes hold the model's variables, and that its parts
// cover each variable: a variable that is no table, each element exactly once.
//
//   kInvalidArgument  names the first difference
absl::Status CheckPlan(const Plan& plan,
                       const std::vector<VariableSpec>& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PLAN_H_
