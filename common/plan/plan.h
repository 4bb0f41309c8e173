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
  // Above 1 where a table is cut by RowCut::kMod: from one row of the part to
  // its next, in rows of the table. `offset` is where the first row is. Of a
  // growing table this is how many parts there are, and `offset` counts them.
  int64_t row_stride = 1;

  bool operator==(const PlannedPart&) const = default;
};

// Plan says which variables a job has and where every part of them lives.
// Parts are in order of variable, then of their first element; a server's
// indices ascend in that order too.
struct Plan {
  std::vector<VariableSpec> variables;
  std::vector<PlannedPart> parts;
};

// Checks that a plan is of the model that this worker has described, so that
// memory of the plan's sizes holds the model's variables, and that its parts
// are all of each variable: of one that is no table, each element once.
//
//   kInvalidArgument  names the first difference
absl::Status CheckPlan(const Plan& plan,
                       const std::vector<VariableSpec>& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PLAN_H_
