#include "worker/loop/loop_end.h"

#include <algorithm>

namespace lockstep::worker {
namespace {

// How long a worker that a server has refused waits before it joins again. If
// the job has ended, the answer to a heartbeat shows that meanwhile.
constexpr absl::Duration kVerdict = absl::Seconds(4);

}  // namespace

bool MustAwaitEnd(const absl::Status& loop, bool no_room) {
  return no_room || loop.ok() || absl::IsCancelled(loop) ||
         absl::IsFailedPrecondition(loop);
}

absl::Duration EndWait(const absl::Status& loop, bool no_room,
                       const JobConfig& job) {
  if (no_room) return 2 * job.heartbeat_interval;
  return absl::IsCancelled(loop) ? job.max_wait
                                 : std::min(2 * job.lease, kVerdict);
}

bool MustWaitOn(const absl::Status& loop, bool no_room, bool job_is_training) {
  return (no_room || loop.ok()) && !job_is_training;
}

LeaveCause LeaveCauseOf(const absl::Status& status, bool no_room) {
  if (status.ok()) return LeaveCause::kDone;
  if (absl::IsCancelled(status)) return LeaveCause::kStopped;
  if (absl::IsOutOfRange(status)) return LeaveCause::kEndOfInput;
  return no_room ? LeaveCause::kNoRoom : LeaveCause::kCannotTakePart;
}

}  // namespace lockstep::worker
