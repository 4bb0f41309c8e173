#ifndef LOCKSTEP_CHIEF_PLAN_MIRROR_REDUCERS_H_
#define LOCKSTEP_CHIEF_PLAN_MIRROR_REDUCERS_H_

#include <vector>

#include "common/plan/plan.h"

namespace lockstep::chief {

// Returns `plan`, a plan over all servers of the cluster, with its parts summed
// by `servers` alone (ascending, not empty): the parts of each other server are
// divided among `servers`, in stretches of consecutive indices and about equal
// sizes. Indices stay, so that state files fit. A plan without mirrors stays as
// it is.
Plan PlanAmong(Plan plan, const std::vector<int>& servers);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PLAN_MIRROR_REDUCERS_H_
