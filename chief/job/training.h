#ifndef LOCKSTEP_CHIEF_JOB_TRAINING_H_
#define LOCKSTEP_CHIEF_JOB_TRAINING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/backups/backup_tuner.h"
#include "chief/backups/push_tuner.h"
#include "chief/events/job_events.h"
#include "chief/job/checkpoint_driver.h"
#include "chief/job/job_context.h"
#include "chief/job/member_deaths.h"
#include "chief/steps/stall_replacement.h"
#include "chief/steps/step_driver.h"

namespace lockstep::chief {

// Training makes one step after the other while the servers are together, with
// the checkpoints between them, until it must end or the servers must be
// brought together.
//
// Threads: belongs to the chief's loop.
// Borrows: all constructor arguments.
class Training {
 public:
  // The next thing to do.
  enum class Turn {
    kGoesOn,
    kNewSettings,  // in effect once servers are brought together
    kServerAway,   // servers must be brought together
    kEnded,        // see result()
    kReplaced      // there is a newer chief; see result()
  };

  Training(JobContext& context, StepDriver& steps,
           CheckpointDriver& checkpoints, MemberDeaths& deaths, int num_servers)
      : context_(context),
        steps_(steps),
        checkpoints_(checkpoints),
        deaths_(deaths),
        replacement_(num_servers),
        tuner_(context.job.stall_timeout),
        push_tuner_(context.job.micro_batches_per_step) {}

  // Begins when the servers are open for the first time.
  void Begin() { opened_ = context_.now; }
  // Must be called before servers are brought together: calls under way are
  // void.
  void Interrupt();

  // Must be called between steps. Begins the next step, unless training is over
  // or the job must stand still. NextStep() applies changed settings first.
  Turn NextStep();
  Turn BeginStep();

  Turn OnTake(const TakeAnswered& event);
  Turn OnCommit(const CommitAnswered& event);
  void OnReplace(const ReplaceAnswered& event);
  // Must be called when the copy for a checkpoint is made, or has failed.
  void OnCopied();
  Turn OnTick();

  // After kEnded: kOk, StoppedStatus(), or a failure.
  const absl::Status& result() const { return result_; }
  bool input_ended() const { return input_ended_; }

 private:
  Turn Heard(const absl::StatusOr<StepDriver::Heard>& heard);
  Turn End(const absl::Status& status) {
    result_ = status;
    return Turn::kEnded;
  }
  void BeginGranted();
  // Reports the last commit to the servers. Needed if no take follows it.
  void TellCommit();
  void StandStill();
  void ReplaceStalled();
  // AUTO jobs: tells the tuner of the workers. Also in a pause, in which
  // workers that were sent back register again.
  void HearWorkers();
  // AUTO jobs: change the number of gradients of the next step, or of the
  // current one, which then begins anew.
  void TuneNextStep();
  void TuneStepAtHand();
  void Want(const BackupTuner::Change& change);
  // Jobs whose chief chooses how many micro-batches a worker pushes at once:
  // changes that number for the next step.
  void TunePushes();
  void WantReplicas(int replicas, const std::string& notice);
  void ReportWaits();

  JobContext& context_;
  StepDriver& steps_;
  CheckpointDriver& checkpoints_;
  MemberDeaths& deaths_;
  StallReplacement replacement_;
  BackupTuner tuner_;  // AUTO jobs
  PushTuner push_tuner_;
  absl::Time opened_ = absl::InfiniteFuture();
  absl::Time last_report_ = absl::InfinitePast();
  bool awaits_copy_ = false;  // the next step waits for a checkpoint's copy
  bool input_ended_ = false;
  absl::Status result_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_TRAINING_H_
