#ifndef LOCKSTEP_CHIEF_JOB_SAVING_H_
#define LOCKSTEP_CHIEF_JOB_SAVING_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/events/job_events.h"
#include "chief/job/checkpoint_driver.h"
#include "chief/job/job_context.h"
#include "chief/job/last_checkpoint.h"
#include "chief/job/member_deaths.h"
#include "chief/steps/step_driver.h"

namespace lockstep::chief {

// Saving writes the last step of a job to a checkpoint once training has ended.
// It waits up to max_wait for absent servers to return and for the volume to
// accept writes; less if the job was asked to stop. A job that fails while all
// its servers are alive, or all that a checkpoint needs, gets one attempt,
// which may take up to max_wait. In compatible mode a later step that is half
// made has overwritten the last one: then there is no checkpoint of it, and the
// job fails.
//
// Threads: belongs to the chief's loop.
// Borrows: all constructor arguments.
class Saving {
 public:
  // The next thing to do.
  enum class Turn {
    kGoesOn,
    kServerAway,  // servers must be brought together before the next attempt
    kEnded,       // see result()
    kReplaced     // there is a newer chief; see result()
  };

  Saving(JobContext& context, StepDriver& steps, CheckpointDriver& checkpoints,
         MemberDeaths& deaths)
      : context_(context),
        steps_(steps),
        checkpoints_(checkpoints),
        deaths_(deaths),
        last_(context.job, checkpoints) {}

  // Begins when training has ended for the first time. `trained` is kOk or
  // StoppedStatus().
  Turn Begin(const absl::Status& trained);
  // Begins when training has failed with `failure`.
  Turn BeginFailing(const absl::Status& failure);
  bool begun() const { return trained_.has_value(); }
  // True since BeginFailing().
  bool is_failing() const { return failing_.has_value(); }

  // Continues after lost steps were made again, with the status that ended that
  // training: a stop replaces an earlier kOk as the result, and a failure ends
  // without the checkpoint.
  Turn TrainedAgain(const absl::Status& trained);
  // Makes another attempt.
  void Try();
  // True if servers have lost steps that were committed when training ended,
  // and the job has to make them again: one that fails does not.
  bool HasLostSteps() const {
    return !is_failing() && steps_.step() < last_step_;
  }
  // True if the checkpoint that is being written is an attempt of this object.
  bool writes() const { return last_.writes(); }

  Turn OnTokensClosed(const TokensClosed& event);
  Turn OnSavedChecked(const SavedChecked& event);
  Turn OnCheckpoint();  // as of LastCheckpoint
  Turn OnTick();
  // Ends without the checkpoint. `why` becomes the result, except of a job that
  // fails.
  Turn GiveUp(const absl::Status& why);

  // After kEnded: kOk, StoppedStatus(), or a failure.
  const absl::Status& result() const { return result_; }

 private:
  Turn Tried(const std::optional<absl::Status>& saved);
  Turn TriedBeforeFailing(const absl::Status& saved);
  Turn Pause();
  Turn End(const absl::Status& status) {
    context_.out.push_back(Waits{});
    result_ = status;
    return Turn::kEnded;
  }

  JobContext& context_;
  StepDriver& steps_;
  CheckpointDriver& checkpoints_;
  MemberDeaths& deaths_;
  LastCheckpoint last_;
  std::optional<absl::Status> trained_;
  std::optional<absl::Status> failing_;
  absl::Time began_;
  int64_t last_step_ = 0;
  // Between attempts.
  bool pauses_ = false;
  absl::Duration pause_;
  absl::Time again_;
  absl::Status saved_;  // the result of the last attempt
  absl::Status result_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_SAVING_H_
