#ifndef LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
#define LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

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
  // kResume: the committed step. Otherwise the checkpoint's step, or 0.
  int64_t step = 0;
  // kResume: the step at hand begins anew, since the gradients that a server
  // had collected for it are lost, now or in a round that was not finished.
  bool redo = false;
  int64_t repeated_steps = 0;  // kGoBack: committed steps that are made again
  std::string reason;          // kGoBack, and with copies, for people
  // kResume, of mirrors: servers whose state is lost or too old, ascending, and
  // the one from which they take it.
  std::vector<int> copies = {};
  int donor = 0;
};

// Decides. ps task 0 is `reports[0]`, which always has parts: the step that it
// has committed is the job's, and a server that has prepared that step commits
// it too. A state that is further than ps task 0's belongs to another history,
// and a checkpoint that is further than all states is newer than they.
//
// `in_place`: values are updated in place, so that a killed process may leave
// half a step. `checkpoint_step` is the newest one, -1 for none.
// `known_step` is the last one that this chief has seen committed, -1 for none:
// if all servers are behind it, another chief has taken them back, and workers
// of this chief may have gradients of lost steps.
RecoveryPlan MakeRecoveryPlan(absl::Span<const ServerReport> reports,
                              bool in_place, int64_t checkpoint_step,
                              int64_t known_step);

// The same where every server has a copy of all: no step is lost while one of
// them has it. The step that ps task 0 has committed is the job's; if its state
// is lost, the newest that any other has committed. If all of those have
// prepared the step after it, that one: ps task 0 may have committed it, unless
// the job was paused or that step is beyond `train_steps`. Servers that have
// neither committed nor prepared the job's step copy it from one that has.
RecoveryPlan MakeMirrorPlan(absl::Span<const ServerReport> reports,
                            int64_t checkpoint_step, int64_t known_step,
                            int64_t train_steps);

// For people: the servers that copy, and the state that they take. `plan` must
// have copies.
std::string TextOfCopies(const RecoveryPlan& plan);

// Attempts of a step that begins anew under a chief of `epoch`: larger than any
// that an older one can have given, so that no server needs to remember them.
int64_t FirstAttempt(uint64_t epoch);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
