#ifndef LOCKSTEP_COMMON_PLAN_LEAVE_CAUSE_H_
#define LOCKSTEP_COMMON_PLAN_LEAVE_CAUSE_H_

namespace lockstep {

// The cause of a process's departure from a job: v1::LeaveCause, with the same
// numbers.
enum class LeaveCause {
  kDone = 1,            // the job has ended
  kEndOfInput = 2,      // a worker has used up its data
  kCannotTakePart = 3,  // another start would fail in the same way
  kNoRoom = 4,          // a growing table is full
  kStopped = 5,         // it was asked to stop, or names no cause
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_LEAVE_CAUSE_H_
