#ifndef LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
#define LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "chief/servers/server_report.h"

namespace lockstep::chief {

// What all servers are to do together.
//
//   kStart   none has any state: the newest checkpoint, or initial values
//   kResume  all have what is needed to go on from `step`
//   kGoBack  state is lost: all leave theirs for the newest checkpoint, or for
//            initial values
struct RecoveryPlan {
  enum class Action { kStart, kResume, kGoBack };
  Action action = Action::kStart;
  // Of kResume: the committed step. Otherwise that of the checkpoint, or 0.
  int64_t step = 0;
  // Of kResume: the step at hand begins anew, since what a server had collected
  // of it is lost, now or in a round that was not finished.
  bool redo = false;
  // Of kGoBack: committed steps that are made once more, and why.
  int64_t repeated_steps = 0;
  std::string reason;
};

// Decides. ps task 0 is `reports[0]`, which always has parts: the step that it
// has committed is the job's, and a server that has prepared that step commits
// it too. A state that is further than ps task 0's belongs to another history,
// and a checkpoint that is further than all states is newer than they.
//
// `in_place`: values are updated in place, so that what a killed process leaves
// may be half a step. `checkpoint_step` is the newest one, -1 for none.
// `known_step` is the last one that this chief has seen committed, -1 for none:
// servers that all are behind it have been taken back by another chief, and
// workers of this one may have gradients of what is lost.
RecoveryPlan MakeRecoveryPlan(absl::Span<const ServerReport> reports,
                              bool in_place, int64_t checkpoint_step,
                              int64_t known_step);

// Attempts of a step that begins anew under a chief of `epoch`: larger than any
// that an older one can have given, so that no server needs to remember them.
int64_t FirstAttempt(uint64_t epoch);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
