#ifndef LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_
#define LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/cluster/task_id.h"

namespace lockstep {

// What a process may draw from its clock as its incarnation: microseconds up to
// the year 2112. Larger ones come only of those before them, so that no process
// can name one that shuts out all others of its task.
inline constexpr uint64_t kMaxDrawnIncarnation = uint64_t{1} << 52;
inline constexpr uint64_t kMaxIncarnationLead = uint64_t{1} << 20;

// Whether `task`, of which `newest` is the newest incarnation that is known (0:
// none), can have drawn `incarnation`.
//
//   kInvalidArgument  no clock can have led to it
absl::Status CheckDrawn(const TaskId& task, uint64_t incarnation,
                        uint64_t newest);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_INCARNATION_BOUNDS_H_
