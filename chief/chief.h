#ifndef LOCKSTEP_CHIEF_CHIEF_H_
#define LOCKSTEP_CHIEF_CHIEF_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_policy.h"
#include "chief/checkpoint/checkpoint_trouble.h"
#include "chief/job/recovery_plan.h"
#include "chief/job/recovery_round.h"
#include "chief/job/stall_watch.h"
#include "chief/job/step_pace.h"
#include "chief/job/step_waits.h"
#include "chief/job/sync_loop.h"
#include "chief/members/membership_table.h"
#include "chief/operators/chief_metrics.h"
#include "chief/operators/coordinator_service.h"
#include "chief/operators/job_board.h"
#include "chief/operators/steering_desk.h"
#include "chief/shard_group_client.h"
#include "common/base/clock.h"
#include "common/base/event_queue.h"
#include "common/base/retry_schedule.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/directory_owner.h"
#include "common/checkpoint/whole_checkpoints.h"
#include "common/cluster/cluster.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"
#include "common/job/learning_rate.h"

namespace lockstep {

// Chief drives one job from its first member to its last checkpoint. It is a
// library: the chief program runs it, and worker 0 where the cluster has no
// chief job.
//
// One thread, that of Run(), decides everything; gRPC's threads only bring
// events. What can be decided without talking is in SyncLoop,
// MembershipTable, JobBoard and CheckpointPolicy.
//
// Threads: service(), Metrics() and RequestStop() may be used from any thread.
class Chief final : private RecoverySource {
 public:
  // Checks that the job fits the cluster, and fills in the replicas.
  //
  //   kInvalidArgument  no ps or no worker in the cluster; replicas that the
  //                     cluster cannot supply; a beginning without checkpoints
  //   kFailedPrecondition  another job that runs writes its checkpoints where
  //                        this one would
  static absl::StatusOr<std::unique_ptr<Chief>> Make(const Cluster& cluster,
                                                     JobConfig job,
                                                     uint64_t incarnation,
                                                     const Clock& clock,
                                                     Beginning beginning = {});
  ~Chief() override;

  // To be served while Run() runs.
  CoordinatorService& service() { return *service_; }

  // As ChiefMetrics() has them, of now.
  std::vector<Metric> Metrics() const {
    const JobBoard::View view = board_.Get(clock_.Now());
    return ChiefMetrics(
        view, members_.Members(),
        LearningRateInEffect(job_, view.settings.learning_rate_scale,
                             view.global_step));
  }

  // Ends the job after the step at hand, with a checkpoint. With `hold` its
  // processes ask not to be started again.
  void RequestStop(const std::string& reason, bool hold = false);

  // Runs the job to its end, and until all members have left.
  //
  //   kOk         the job is done
  //   kCancelled  it was stopped, as StoppedStatus() says; a checkpoint holds
  //               its last step
  //   others      it failed, and every member has been told why
  absl::Status Run();

 private:
  // Answers of the servers are those of a later round if `epoch` is not that of
  // the round at hand.
  struct TakeDone {
    uint64_t epoch;
    int server;
    int64_t step;
    absl::Status status;
    v1::TakeAndApplyResponse response;
  };
  struct CommitDone {
    uint64_t epoch;
    int64_t step;
    int64_t attempt;
    int64_t redone_attempt;  // as in CommitResponse
    absl::Status status;
  };
  struct CheckpointDone {
    int64_t step;
    absl::Status status;
  };
  using Event = std::variant<TakeDone, CommitDone, CheckpointDone>;

  Chief(const Cluster& cluster, JobConfig job, const Sender& self,
        std::vector<std::string> servers, const Clock& clock,
        Beginning beginning);

  // The phases of a job, in order. Each returns early with kCancelled when a
  // stop was requested, and with the cause when the job cannot go on.
  absl::Status RunPhases();
  // Of a job whose checkpoints have its last step.
  void SayNothingToDo();
  // Leaves no checkpoint that is newer than what the job is to begin with.
  absl::Status PrepareBeginning();
  absl::Status WaitForMembers();
  absl::Status SetUp();
  absl::Status Train();
  absl::Status Finish();
  void WaitForLeaves();

  // A server has been away: brings all of them to one step again, however long
  // that takes within max_wait, counted from `began`. Between, all stands
  // still.
  absl::Status Recover();
  absl::Status BringTogether(absl::Time began);
  absl::Status WaitForServers(absl::Time began);
  void ReportServersAway(const std::string& whom, absl::Time began);
  // Sets finished_before_ if a chief that has opened nothing has waited so long
  // that it may say so.
  bool FinishedBefore(absl::Duration waited);
  // One round, as RecoveryRound::Run().
  absl::Status Admit();
  absl::StatusOr<std::optional<Restored>> Restore(const StateMap& map) override;
  bool OnResume(absl::Span<const ServerReport> reports, bool first) override;
  RunSettings settings() const override { return settings_; }
  absl::Status OnWorking(const std::string& what) override;
  void OnEpoch(uint64_t epoch) override;
  void OnStartFrom(const RecoveryPlan& plan, bool first) override;
  std::string Describe(int64_t step) const;
  // What a newer chief's fence means for this one.
  absl::Status Replaced(const absl::Status& status);
  // A server that lives may answer the next call.
  static bool Passing(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  }

  absl::Status Handle(Event event);
  absl::Status OnTake(const TakeDone& done);
  absl::Status OnTakeFailed(const TakeDone& done);
  absl::Status OnCommit(const CommitDone& done);
  // A server has summed gradients of others than the set of the step.
  void BeginAnew(const CommitDone& done);
  // The loop is between steps after a commit.
  absl::Status Stepped();
  void OnCheckpoint(const CheckpointDone& done);
  void Ask(const SyncLoop::Actions& actions);
  // Asks servers again whose calls failed a while ago.
  void AskAgain();
  // Between steps: begins the next one, unless training is over.
  absl::Status NextStep();
  // Whether the steps granted to the server are to be the last ones for now.
  bool HasToPause() const;
  void Grant();

  // Brings about what operators want, at a step boundary: in strict mode the
  // step at hand begins anew, in compatible mode it is ended first.
  absl::Status Steer();
  absl::Status ApplySettings(const RunSettings& wanted);
  bool SettingsChange() const { return !(desk_.wanted() == settings_); }
  // Whether what a server has summed counts no more, since it has been told
  // other settings than those that are in effect.
  bool SumsOtherwise(absl::Span<const ServerReport> reports) const;
  // Between steps, of a job that is paused.
  absl::Status StandStill();
  int num_workers() const;
  // Of the checkpoint of a job that had been changed.
  void RestoreSettings(const Manifest& manifest);

  // What has to be done every now and then: leases, waits, limits.
  absl::Status Tick();
  // Notes what a member's end means.
  absl::Status Bury(const MembershipTable::Dead& dead);
  // Hears from a take how far its server is.
  void Hear(const TakeDone& done);
  // `attempt` of `step` has begun on ps task 0.
  void HearOfAttempt(int64_t step, int64_t attempt);
  // Has a worker that holds up the step replaced, if there is another.
  void ReplaceStalled();
  absl::Status BuryWorker(const MembershipTable::Dead& dead);
  // Fails where `dead` has failed for good and too few workers are left that
  // have not: another start would fail in the same way.
  absl::Status CheckEnoughAreLeft(const MembershipTable::Dead& dead) const;
  void NoteDeath(const std::string& task, const std::string& reason,
                 const std::string& held, const std::string& redone = "");
  absl::Status CheckMaxWait();
  void ReportWaits();
  void ReportLosses() const;
  std::string MissingWorkers() const;
  StepWaits Waits() const;  // of the step at hand
  // Too few workers have data left for another step.
  bool InputEnded() const;

  // Writes a checkpoint of the step at hand in the background.
  absl::Status StartCheckpoint();
  // The same, if one is due or wanted and none is being written.
  void MaybeStartCheckpoint();
  // Training goes on without it, until the next one is due.
  void CheckpointFailed(int64_t step, const absl::Status& status);
  // Waits for the one that is being written.
  void JoinCheckpoint();
  // Repeats TrySaveLastCheckpoint() with every server that comes back, and
  // while the volume takes nothing, for as long as max_wait; not for long once
  // somebody has asked the job to stop.
  absl::Status SaveLastCheckpoint();
  absl::Status TrySaveLastCheckpoint();
  // Waits before the next attempt, and says what for. Returns what a death
  // meanwhile means.
  absl::Status PauseBeforeLastCheckpoint(const absl::Status& failure,
                                         absl::Time began,
                                         absl::Duration pause);
  // A job that fails though all its servers are there keeps its last step: one
  // attempt, whose failure changes nothing.
  void SaveBeforeFailing(const absl::Status& failure);
  // Tells operators, in the log and wherever they look.
  void Notify(const std::string& text);
  Manifest MakeManifest(int64_t step) const;
  // The newest whole checkpoint, for Restore(). Says what it has passed over,
  // and sets it aside.
  absl::StatusOr<int64_t> WholeStep() override;
  bool BeginsAnew() const override { return beginning_.anew(); }
  // As CheckpointStore::RemoveUnfinished().
  void RemoveUnfinished();
  absl::StatusOr<int64_t> LatestStep() const override;
  absl::Status StopRequested() const;

  const JobConfig job_;
  const Sender self_;
  const Beginning beginning_;
  const bool evaluator_in_cluster_;
  const bool has_evaluator_;  // that can score
  const Clock& clock_;
  MembershipTable members_;
  JobBoard board_;
  SteeringDesk desk_;
  std::unique_ptr<CoordinatorService> service_;
  EventQueue<Event> events_;
  ShardGroupClient servers_;  // its calls report to events_ until it ends
  const CheckpointStore store_;
  // Of the thread that writes a checkpoint, while there is one.
  WholeCheckpoints whole_{store_};
  std::optional<CheckpointReader> newest_whole_;
  std::optional<DirectoryOwner> owner_;  // of the directory of checkpoints

  mutable Mutex stop_mutex_;
  std::optional<absl::Status> stop_ ABSL_GUARDED_BY(stop_mutex_);

  // Of the thread that runs Run().
  const absl::Time started_ = clock_.Now();
  absl::Time opened_ = absl::InfiniteFuture();  // for the first time
  absl::Time last_tick_ = clock_.Now();
  bool server_away_ = false;  // so Recover() has to be called
  bool replaced_ = false;     // by a newer chief
  // The job was done before this chief started: members that have left with it
  // do not come.
  bool finished_before_ = false;
  JobBoard::Losses losses_;
  RunSettings settings_;  // in effect, or about to be
  StateMap map_;
  std::optional<SyncLoop> loop_;
  RetrySchedule retries_;
  RetrySchedule burials_;  // by worker
  // What ps task 0 could not be asked; nothing while a take is at hand.
  std::optional<SyncLoop::CommitAction> commit_again_;
  std::optional<CheckpointPolicy> policy_;
  int64_t committed_attempt_ = 0;
  // Up to here a server that is alone commits by itself. What needs the job to
  // stand still at a step boundary waits until that step is reached.
  int64_t granted_until_ = 0;
  int64_t told_until_ = 0;  // as much of that as the server has heard of
  StepPace pace_;
  absl::Time together_since_ = absl::InfinitePast();  // BringTogether() began
  absl::Time step_began_ = absl::InfinitePast();
  absl::Time last_report_ = absl::InfinitePast();
  std::string said_;  // of servers that are away, last
  std::string away_;  // why the last round did not bring them together
  std::vector<std::string> server_waits_;  // by server; empty: prepared
  std::vector<int> announced_;
  // By server: as in TakeAndApplyResponse, of the step at hand.
  std::vector<std::vector<int>> contributors_;
  StallWatch stalls_;
  absl::Time replace_again_ = absl::InfinitePast();
  std::thread checkpoint_thread_;
  bool checkpoint_running_ = false;
  int64_t saved_step_ = -1;
  CheckpointTrouble trouble_;
  std::string why_done_ = "train_steps reached";  // if it comes to that
  int ended_inputs_ = 0;  // workers whose data is used up
};

}  // namespace lockstep

#endif  // LOCKSTEP_CHIEF_CHIEF_H_
