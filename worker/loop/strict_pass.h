#ifndef LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_
#define LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/gradient_pass.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// StrictPass lets the transfer of one pass of strict mode overlap with its
// computing: gradients are sent as they become ready, if the worker is a member
// of the step's set.
//
//   member by its token  sends from the first gradient on
//   any other worker     announces with the first gradient, when the backward
//                        pass has begun; sends from then on if it is selected
//   a backup             drops the pass at the next layer once the step is over
//
// Threads: one thread.
// Borrows: the client, the clipper and the meter.
class StrictPass final : public GradientPass {
 public:
  struct Options {
    // The attempt for which the token made the worker a member; 0: announce.
    int64_t selected_attempt = 0;
    bool watch = false;   // the step may be over before the pass is
    bool shared = false;  // work is shared
    GradientClipper* clipper = nullptr;  // clips before sending; null: none
    ProgressMeter* meter = nullptr;      // times announcements; null: none
  };

  // Calls BeginPass() of the client and the clipper.
  StrictPass(StepClient& client, const PassId& pass, const Options& options);

  // Returns kAborted once the pass is dropped or status() is an error.
  absl::Status CheckWanted() override;
  absl::Status PullRows() override {
    return PullAgain(StepClient::PulledAgain::kRows);
  }
  absl::Status PullNextBatch() override {
    return PullAgain(StepClient::PulledAgain::kRowsAndTaken);
  }
  void GradientReady(size_t variable) override;
  void GradientAbsent(size_t variable) override;

  // Must be called when the pass has been computed: makes the gradients that
  // the clipper kept back ready, and announces a pass without gradients.
  //
  //   errors of StepClient::Announce(), whenever that was called
  absl::Status Finish();

  // True if CheckWanted() or a pull found that the step is over without this
  // pass.
  bool dropped() const { return dropped_; }
  // The outcome of the announcement. If it is an error, CheckWanted() ends the
  // pass.
  const absl::Status& status() const { return status_; }
  // True if the token made every worker a member of the step's set.
  bool all_workers_count() const { return all_workers_count_; }
  // The attempt to push for; 0 if the worker is no member.
  int64_t attempt() const { return attempt_; }

 private:
  absl::Status PullAgain(StepClient::PulledAgain what);
  void Send(size_t variable, bool absent);
  // Finds out whether the worker is a member, and begins the push if so.
  void Decide();

  StepClient& client_;
  const PassId pass_;
  const bool all_workers_count_;
  const bool watch_;
  GradientClipper* const clipper_;
  ProgressMeter* const meter_;
  int64_t attempt_ = 0;
  bool decided_ = false;
  bool dropped_ = false;
  absl::Status status_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_LOOP_STRICT_PASS_H_
