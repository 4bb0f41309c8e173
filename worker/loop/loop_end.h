#ifndef LOCKSTEP_WORKER_LOOP_LOOP_END_H_
#define LOCKSTEP_WORKER_LOOP_LOOP_END_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/job/job_config.h"
#include "common/plan/leave_cause.h"

namespace lockstep::worker {

// Decisions of a worker whose training loop has returned the status `loop`.
// `no_room`: it has found a growing table full.

// True if the worker must wait for the chief, which alone knows whether the job
// has ended. After the last step the chief ends the job when the last
// checkpoint is written and scored. A pass after the last step may find a table
// full, which is no error then.
bool MustAwaitEnd(const absl::Status& loop, bool no_room);
// Returns the time that the worker must wait for the end of the job. After that
// the job may have gone on without the worker.
absl::Duration EndWait(const absl::Status& loop, bool no_room,
                       const JobConfig& job);
// True if the worker must wait once more after EndWait(): it has found a table
// full or its tokens closed, and the job does not train, so that it is about to
// end. If false, and a server has refused this incarnation or closed its
// tokens, the job has gone back to an earlier step, and the worker must
// register again.
bool MustWaitOn(const absl::Status& loop, bool no_room, bool job_is_training);

// Returns the cause with which a worker leaves the job whose part in it has
// ended with `status`.
LeaveCause LeaveCauseOf(const absl::Status& status, bool no_room);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_LOOP_END_H_
