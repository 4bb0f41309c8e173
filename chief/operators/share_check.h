#ifndef LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_
#define LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "common/cluster/task_id.h"

namespace lockstep::chief {

// Checks that the data of an elastic job is still divided among the workers
// that the answer to the member's registration named (`told`), by comparing
// these with the workers of the job now (`in_effect`); both are ascending. The
// workers may change right after a registration, or under an earlier chief
// whose answers the member did not receive. A worker that kept a share of
// another division would repeat examples of other workers or leave some out;
// with mirrors it would also push by an old plan. Passes if `told` is empty:
// the job is not elastic.
//
//   kAborted  the member must register again
absl::Status CheckShare(const TaskId& member, const std::vector<int>& told,
                        const std::vector<int>& in_effect);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_
