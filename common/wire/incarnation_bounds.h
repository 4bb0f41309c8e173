#ifndef LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_
#define LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/cluster/task_id.h"

namespace lockstep {

// The largest valid incarnation, so that sums and differences of two never
// overflow. None can be drawn above it.
inline constexpr uint64_t kLargestIncarnation = uint64_t{1} << 62;

// The largest incarnation that a process may draw from its clock: microseconds
// since 1970, up to the year 2112. A larger one must be within
// kMaxIncarnationLead of the newest that is known, so that no process can claim
// one that shuts out all later processes of its task.
inline constexpr uint64_t kMaxDrawnIncarnation = uint64_t{1} << 52;
inline constexpr uint64_t kMaxIncarnationLead = uint64_t{1} << 20;

// Checks that `task` can have drawn `incarnation`. `newest` is the newest known
// incarnation of the task, 0 if none is known.
//
//   kInvalidArgument  above both kMaxDrawnIncarnation and `newest` +
//                     kMaxIncarnationLead; names the task and the fix
absl::Status CheckDrawn(const TaskId& task, uint64_t incarnation,
                        uint64_t newest);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_
