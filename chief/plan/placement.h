#ifndef LOCKSTEP_CHIEF_PLAN_PLACEMENT_H_
#define LOCKSTEP_CHIEF_PLAN_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "common/plan/plan.h"

namespace lockstep::chief {

// Cuts variables into parts and distributes these over `num_servers`.
//
// Without another partitioner, a part has at most `max_part_bytes`, and a table
// is cut by rows into one part per server, of any size. The other partitioners
// are TensorFlow's, along the first axis; a scalar is one part. Each part is
// placed separately: on the server with the fewest bytes so far, the lowest
// index among equals (TensorFlow's greedy strategy by bytes), or by
// `placement`. A placement by name uses "w/part_0" if a variable has several
// parts.
//
//   kInvalidArgument  no server, no variable, two of one name, an empty name,
//                     an unknown dtype, a dimension below 1, more than 2^56
//                     elements or 2^20 parts in all, a part limit smaller
//                     than an element, a part of more than 2^30 bytes, or
//                     more than kMaxVariables
absl::StatusOr<Plan> MakePlan(const std::vector<VariableSpec>& variables,
                              int num_servers, int64_t max_part_bytes,
                              const PlacementConfig& placement = {},
                              const PartitionerConfig& partitioner = {});

// Gives every server all parts of a plan that MakePlan() has made: see
// Plan::mirrored.
//
//   kInvalidArgument  the model has a table that grows
absl::StatusOr<Plan> MirrorPlan(Plan plan, int num_servers);

// The plan of a job over `num_servers`: MakePlan() by its settings, and
// MirrorPlan() if its servers are mirrors. ps 0 has a part, because it keeps
// the optimizer's scalars of the whole job.
//
//   kInvalidArgument  as MakePlan() and MirrorPlan(); a table grows under
//                     another strategy than PARAMETER_SERVER; or ps 0 gets no
//                     part, which happens to placement by name
absl::StatusOr<Plan> PlanOfJob(const JobConfig& job,
                               const std::vector<VariableSpec>& variables,
                               int num_servers);

// Checks the size of a model without making the plan: refuses too many
// variables or elements, or more parts of `max_part_bytes` than a plan may
// have.
//
//   kInvalidArgument  as MakePlan()
absl::Status CheckModelSize(const std::vector<VariableSpec>& variables,
                            int64_t max_part_bytes,
                            const PartitionerConfig& partitioner = {});

// The largest number of variables of a model.
inline constexpr int kMaxVariables = 1 << 16;

// Checks that gradients of all variables can be sent in the job's wire type.
//
//   kInvalidArgument  names the first variable whose gradients cannot
absl::Status CheckGradientType(const std::vector<VariableSpec>& variables,
                               GradientType gradient_wire_type);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PLAN_PLACEMENT_H_
