#ifndef LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"
#include "common/plan/example_shape.h"
#include "common/plan/leave_cause.h"
#include "common/plan/plan.h"
#include "common/plan/progress.h"
#include "common/wire/wire_codec.h"
#include "grpcpp/channel.h"
#include "lockstep/v1/coordinator.grpc.pb.h"

namespace lockstep {

// ChiefClient is a process's membership in a job: it registers, keeps the
// lease alive from a thread of its own, and tells how the job ended.
//
//   made -> Register() -> heartbeats -> ended (the job's end, or loss of the
//                                       chief or of the membership)
//
// A chief that is silent is waited for, for as long as the job's max_wait: one
// that has been started again takes this process over with its next heartbeat.
//
// Threads: safe to share, but for Register(), which one thread calls at a time.
class ChiefClient {
 public:
  struct Options {
    std::string address;  // of the chief
    TaskId task;
    std::string own_address;   // where this process serves
    std::string expected_job;  // job name to insist on; empty: any
    // What a worker reports; may be empty.
    std::function<Progress()> progress;
    // How long a chief is waited for that has never answered.
    absl::Duration chief_wait = absl::InfiniteDuration();
    // Of a worker: an operator wants it to leave. Called with each heartbeat
    // from then on, in its thread; may be empty.
    std::function<void()> on_leave{};
    const Clock* clock = &Clock::Real();  // of waits and ages
  };

  struct Membership {
    std::string job_id;
    uint64_t incarnation = 0;
    JobConfig job;
    int num_workers = 0;
    int data_shard = 0;  // of a worker, below num_workers
  };

  explicit ChiefClient(Options options);
  ~ChiefClient();

  // Waits for the chief, registers with a new incarnation and starts the
  // heartbeats. A chief that has answered before is waited for as long as in
  // between. Where the chief knows a newer incarnation of this task that does
  // not live, as one whose clock was ahead, it says so, and this draws a newer
  // one.
  //
  //   kUnavailable         it has not answered for as long as it is waited for
  //   kCancelled           Stop() was called meanwhile; held: this worker was
  //                        taken out of the job while it was no member
  //   kFailedPrecondition  another job or version, or a newer process of this
  //                        task lives
  //   kNotFound            the chief's cluster has no such task
  //   kInvalidArgument     a job that this process cannot read, or that no
  //                        chief should have taken
  absl::StatusOr<Membership> Register();

  // Tells the chief what the model is, and what examples it is made for. Errors
  // as CoordinatorService: kAborted makes lease_lost() true, as in the calls
  // below.
  absl::Status DescribeModel(
      const std::vector<VariableSpec>& variables,
      const std::optional<ExampleShape>& examples = std::nullopt);

  // Waits until variables have their values. Says in the log what is missing.
  // Call it after DescribeModel(): the plan is checked against that model, so
  // that it can be used without further care.
  //
  //   kCancelled        the job ended or Stop() was called meanwhile
  //   kInvalidArgument  the plan is of another model, or of other servers
  absl::StatusOr<Plan> WaitForPlan(int num_servers, int64_t& global_step);

  // Waits as WaitForPlan(); returns what examples the workers' model is made
  // for, if they have told.
  //
  //   kCancelled        the job ended or Stop() was called meanwhile
  //   kInvalidArgument  examples that cannot be
  absl::StatusOr<std::optional<ExampleShape>> WaitForExamples();

  absl::Status ReportEvaluation(int64_t step, double loss, double accuracy,
                                int64_t examples,
                                std::optional<double> auc = std::nullopt);

  // Asks the chief to stop the job with a checkpoint, because this process has
  // to go and the job cannot do without it.
  void AskToStop(const std::string& reason);

  // Tells the chief that this process leaves in good order, and ends the
  // heartbeats. `reason` is for people.
  void Leave(LeaveCause cause, const std::string& reason);

  // A server has refused this incarnation, since it knows `newest`: the next
  // Register() draws a newer one. 0, and what no clock can have led to, change
  // nothing.
  void OnNewerIncarnation(uint64_t newest) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes Register() and WaitForPlan() return.
  void Stop();

  // Why this process must end, once it must: kOk when the job is done,
  // kCancelled when it was stopped, kAborted when it failed, kUnavailable when
  // the chief is gone or this incarnation was replaced by a newer one.
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status end() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The end was none: the chief took this process for dead, and it may
  // register anew.
  bool lease_lost() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Of a server, when the job has failed or was stopped: a checkpoint holds all
  // that servers have.
  bool state_saved() const { return state_saved_; }

  // As the chief said last: steps are being made.
  bool job_is_training() const { return job_is_training_; }

  // Waits until ended() or Stop(), at most `timeout`; true when ended.
  bool WaitForEnd(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Called when ended() becomes true, from the thread that finds out; at once
  // if it is true already. Perhaps more than once, and no more when another one
  // has been set.
  void set_on_end(std::function<void()> on_end)
      ABSL_LOCKS_EXCLUDED(mutex_, on_end_mutex_);

 private:
  v1::Identity Identity() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time Now() const { return options_.clock->Now(); }
  absl::Status TryRegister(v1::RegisterResponse& response);
  // Why the chief does not answer, for a person.
  std::string Trouble(const absl::Status& status);
  absl::Status AwaitPlan(v1::GetPlanResponse& response);
  absl::StatusOr<Plan> PlanOf(const v1::GetPlanResponse& response,
                              int num_servers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Repeats TryRegister(), with a newer incarnation where one is needed.
  absl::Status RegisterUntilLetIn(v1::RegisterResponse& response)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Heartbeats(absl::Duration interval);
  // One heartbeat; returns true when the process must end.
  bool Beat() ABSL_LOCKS_EXCLUDED(mutex_);
  // The chief has not answered; true when it has been silent for too long.
  bool OnSilence() ABSL_LOCKS_EXCLUDED(mutex_);
  // The history that is kept, as it is now: its ages have grown.
  v1::JobHistory HistoryNow() const;
  // Describes the model to a chief that does not know it.
  void DescribeAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status, bool lease_lost = false)
      ABSL_LOCKS_EXCLUDED(mutex_, on_end_mutex_);
  // A call has failed for good: the lease may have ended.
  absl::Status Refused(const absl::Status& status);
  // Sleeps unless Stop() comes first.
  void Pause(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  void JoinHeartbeats();

  const Options options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;
  std::thread heartbeats_;
  // Of the thread with the heartbeats, once there is one.
  absl::Duration max_wait_;
  absl::Time last_answer_;
  absl::Time said_ = absl::InfinitePast();  // that the chief is silent
  // What a ps keeps for a chief that is started again, and since when.
  std::optional<v1::JobHistory> history_;
  absl::Time history_at_ = absl::InfinitePast();
  bool history_wanted_ = false;

  std::atomic<bool> job_is_training_ = false;
  std::atomic<bool> state_saved_ = false;
  bool was_member_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  std::string job_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t newest_known_ ABSL_GUARDED_BY(mutex_) = 0;  // of this task
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool heartbeats_stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool lease_lost_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  std::vector<VariableSpec> model_ ABSL_GUARDED_BY(mutex_);  // as described
  v1::DescribeModelRequest description_ ABSL_GUARDED_BY(mutex_);

  Mutex on_end_mutex_;  // before mutex_
  std::function<void()> on_end_ ABSL_GUARDED_BY(on_end_mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_
