#ifndef LOCKSTEP_COMMON_COLLECTIVE_LOCAL_GROUP_H_
#define LOCKSTEP_COMMON_COLLECTIVE_LOCAL_GROUP_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/collective/collective.h"

namespace lockstep {

// Returns the members of a group within this process, by rank. Each must be
// used by a thread of its own. An exchange waits at most `timeout` for the
// others; if they do not come in time, the group has ended: all later exchanges
// return the same error at all members.
std::vector<std::unique_ptr<Collective>> MakeLocalGroup(int members,
                                                        absl::Duration timeout);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COLLECTIVE_LOCAL_GROUP_H_
