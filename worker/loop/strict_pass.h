#ifndef LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_
#define LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/loop/pass_hooks.h"
#include "worker/loop/step_client.h"

namespace lockstep {

// StrictPass lets the transfer of one pass of strict mode overlap with its
// computing: gradients are sent as they become ready, if the worker is in the
// step's set.
//
//   in the set already   sends from the first gradient on
//   everybody else       announces with the first gradient: the backward pass
//                        has begun; sends from then on if it is selected
//   a backup             is told by Watch() when its step is over, and drops
//                        the pass at the next layer
//
// Borrows: the client.
class StrictPass {
 public:
  struct Options {
    // The attempt for which the token made the worker a member; 0: announce.
    int64_t selected_attempt = 0;
    bool watch = false;  // the step may be over before the pass is
  };

  StrictPass(StepClient& client, const PassId& pass, const Options& options);

  // For whoever computes, one time. They refer to this object.
  PassHooks Hooks();

  // To be called when the pass has been computed: announces it if no gradient
  // was reported.
  //
  //   errors of StepClient::Announce(), whenever that was
  absl::Status Finish();

  // The pass was told to end early, since its step is over.
  bool dropped() const { return dropped_; }
  // Of the announcement; it told the pass to end early, too.
  const absl::Status& status() const { return status_; }
  // All workers are in the set, as the token says.
  bool everybody_counts() const { return everybody_counts_; }
  // To push for; 0: not in the set.
  int64_t attempt() const { return attempt_; }

 private:
  void OnGradient(size_t variable);
  bool Unwanted();
  // Finds out whether the worker is in the set, and begins the push if so.
  void Decide();

  StepClient& client_;
  const PassId pass_;
  const bool everybody_counts_;
  const bool watch_;
  int64_t attempt_ = 0;
  bool decided_ = false;
  bool dropped_ = false;
  absl::Status status_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_
