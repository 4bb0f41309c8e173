#ifndef LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
#define LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "chief/servers/server_report.h"

namespace lockstep::chief {

// The common action of all servers.
//
//   kStart   none has any state: the newest checkpoint, or initial values
//   kResume  all have the state that is needed to continue from `step`
//   kGoBack  state is lost: all discard theirs for the newest checkpoint, or
//            for initial values
struct RecoveryPlan {
  enum class Action { kStart, kResume, kGoBack };
  Action action = Action::kStart;
  // kResume: the committed step. Otherwise the checkpoint's step, or 0.
  int64_t step = 0;
  // kResume: the current step begins anew, because a server has lost the
  // gradients that it had collected for that step, in this round or in an
  // earlier one that did not finish.
  bool redo = false;
  // kGoBack: committed steps to be made again. 0 if all servers have lost their
  // state: then the number is unknown.
  int64_t repeated_steps = 0;
  std::string reason;  // kGoBack, and with copies; for messages
  // kResume with mirrors: servers whose state is lost or too old, ascending,
  // and the server from which they copy it: the first that has it, ps 0 only if
  // no other has.
  std::vector<int> copies = {};
  int donor = 0;
  bool no_server_has_it = false;  // mirrors: no server has the job's step
};

// Decides the action. `reports[0]` is of ps task 0, which always has parts: its
// committed step is the job's, and a server that has prepared that step commits
// it too. A state ahead of ps task 0's belongs to another history; a checkpoint
// ahead of all states is newer than they are.
//
// `in_place`: values are updated in place, so a killed process may leave half a
// step. `checkpoint_step`: the newest one, -1 for none. `known_step`: the last
// step that this chief has seen committed, -1 for none. If all servers are
// behind `known_step`, another chief has taken them back, and workers of this
// chief may have gradients of lost steps.
RecoveryPlan MakeRecoveryPlan(absl::Span<const ServerReport> reports,
                              bool in_place, int64_t checkpoint_step,
                              int64_t known_step);

// As MakeRecoveryPlan(), if every server has a copy of all parts: no step is
// lost while one server has it. The job's step is the committed step of ps task
// 0 or, if its state is lost, the newest that any other server has committed.
// If all servers at that step have prepared the next one, ps task 0 may have
// committed it. The job's step is then the next one, unless the job was paused
// or that step is beyond `train_steps`. Servers that have neither committed nor
// prepared the job's step copy it from one that has; so do servers that have
// missed the last opening, whatever they have. Servers that take no part do not
// count; ps task 0 must take part.
//
// `opened_epoch`: that of the last round of this chief which was completed; 0:
// there was none. Steps are committed only after such a round, so without the
// state of ps task 0 a server that was opened in it has missed nothing, though
// others were opened later.
RecoveryPlan MakeMirrorPlan(absl::Span<const ServerReport> found,
                            int64_t checkpoint_step, int64_t known_step,
                            int64_t train_steps, uint64_t opened_epoch = 0);

// The epoch of the newest opening that the job may have gone on from, as far as
// mirrors know: that of ps task 0, which is opened last, or if its state is
// lost the newest of the others; 0: none has any state.
uint64_t LastOpening(absl::Span<const ServerReport> reports);

// Describes the servers that copy, and the state that they take. `plan` must
// have copies.
std::string TextOfCopies(const RecoveryPlan& plan);

// Returns the first attempt of a step that begins anew under a chief of
// `epoch`. It is larger than any attempt under an older epoch, so that no
// server needs to remember those.
int64_t FirstAttempt(uint64_t epoch);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_RECOVERY_RECOVERY_PLAN_H_
