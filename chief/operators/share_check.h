#ifndef LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_
#define LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_

#include <vector>

#include "absl/status/status.h"
#include "common/cluster/task_id.h"

namespace lockstep::chief {

// Checks the share of the data that a member of an elastic job was told when it
// registered: it is one among `told`, and the job now has `in_effect`, both
// ascending. The set may change right after a registration, or under an
// earlier chief whose heartbeats the member no longer received. A worker that
// keeps a share of another set would train examples of others again, or leave
// some out; with mirrors it would also push by an old plan. An empty `told`
// fits: the job is not elastic.
//
//   kAborted  the member must register again
absl::Status CheckShare(const TaskId& member, const std::vector<int>& told,
                        const std::vector<int>& in_effect);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_SHARE_CHECK_H_
