#ifndef LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"
#include "common/membership/load_meter.h"
#include "common/membership/membership.h"
#include "common/plan/example_shape.h"
#include "common/plan/figure.h"
#include "common/plan/leave_cause.h"
#include "common/plan/plan.h"
#include "common/plan/progress.h"
#include "common/trace/span_recorder.h"
#include "common/wire/sender.h"

namespace lockstep {

namespace v1 {
class GetPlanResponse;
class HeartbeatRequest;
class HeartbeatResponse;
class Identity;
class RegisterResponse;
}  // namespace v1

class CoordinatorCalls;
struct KeptMessages;
class TraceReporter;

// ChiefClient is a process's membership in a job: it registers, renews the
// lease from a thread of its own, and reports how the job ended. It makes the
// calls; Membership decides what the answers mean.
//
//   made -> Register() -> heartbeats -> ended (the job's end, or loss of the
//                                       chief or of the membership)
//
// It waits for a silent chief for as long as the job's max_wait: a restarted
// chief takes this process over with its next heartbeat.
//
// Threads: safe to share, except Register() and JoinHeartbeats(), which one
// thread may call at a time.
class ChiefClient {
 public:
  struct Options {
    std::string address;  // of the chief
    TaskId task;
    std::string own_address;   // where this process serves
    std::string expected_job;  // job name to insist on; empty: any
    int gpus = 0;              // that a worker computes on; 0: the CPU
    // Returns the worker's progress for heartbeats; may be empty.
    std::function<Progress()> progress;
    // The longest wait for a chief that has never answered.
    absl::Duration chief_wait = absl::InfiniteDuration();
    // Called with each heartbeat, in its thread, after an operator has asked
    // this worker to leave; may be empty.
    std::function<void()> on_leave{};
    const Clock* clock = &Clock::Real();  // of waits and ages
    // The spans to report when an operator requests a trace, by the same clock;
    // null: none.
    SpanRecorder* spans = nullptr;
  };

  // The chief's answer to a registration.
  struct Registration {
    std::string job_id;
    uint64_t incarnation = 0;
    JobConfig job;
    int num_workers = 0;
    int data_shard = 0;  // of a worker, below num_workers
  };

  // An evaluator's score of a checkpoint.
  struct Score {
    double loss = 0;
    double accuracy = 0;
    int64_t examples = 0;
    std::optional<double> auc = {};
    // The figures of a user's evaluator, in place of the others.
    std::vector<NamedFigure> figures = {};
  };

  explicit ChiefClient(Options options);
  ~ChiefClient();

  // Waits for the chief, registers with a new incarnation and starts the
  // heartbeats. Waits for a chief that has answered before as long as between
  // heartbeats. If the chief knows a newer incarnation of this task that is not
  // alive, because a clock was ahead, registers with one that is newer still.
  //
  //   kUnavailable         no answer for as long as the chief is waited for
  //   kCancelled           Stop() was called meanwhile; held: this worker was
  //                        taken out of the job while it was no member
  //   kFailedPrecondition  another job or version, a newer process of this task
  //                        is alive, or an elastic job has too few examples for
  //                        another worker
  //   kNotFound            the chief's cluster has no such task
  //   kInvalidArgument     a job that this process cannot read, or that no
  //                        chief should have accepted
  absl::StatusOr<Registration> Register();
  // Ends the heartbeats until the next Register(), which does the same first.
  // After it, Options::progress may begin anew: its counts are those of one
  // incarnation.
  void JoinHeartbeats();

  // Sends the model to the chief, the shape of the examples that it is made
  // for, and how many the workers divide among themselves; 0: not known. Errors
  // as CoordinatorService: kAborted makes lease_lost() true, as in the calls
  // below.
  absl::Status DescribeModel(
      const std::vector<VariableSpec>& variables,
      const std::optional<ExampleShape>& examples = std::nullopt,
      int64_t num_examples = 0);

  // Keeps the model for a restarted chief that requests it.
  void KnowModel(const std::vector<VariableSpec>& variables)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until variables have their values. Logs what is missing. Must be
  // called after DescribeModel(): the plan is checked against that model, so
  // that it can be used without further checks.
  //
  //   kCancelled        the job ended or Stop() was called meanwhile
  //   kInvalidArgument  the plan is of another model, or of other servers
  //   kFailedPrecondition  `values` has none
  //
  // `values` must return the initial values of a variable, given by its index,
  // if its initializer is kGiven; the chief may request them.
  using InitialValues =
      std::function<absl::StatusOr<absl::Span<const std::byte>>(size_t)>;
  absl::StatusOr<Plan> WaitForPlan(int num_servers, int64_t& global_step,
                                   const InitialValues& values = {});

  // Waits as WaitForPlan(); returns the examples that the workers' model is
  // made for, if they have described them.
  //
  //   kCancelled        the job ended or Stop() was called meanwhile
  //   kInvalidArgument  examples that cannot be
  absl::StatusOr<std::optional<ExampleShape>> WaitForExamples();

  // Sends the score of the checkpoint of `step`, until the chief has answered.
  //
  //   kCancelled        the job ended or Stop() was called meanwhile
  //   kInvalidArgument  a score that cannot be, or a step that the job has not
  //                     reached
  absl::Status ReportEvaluation(int64_t step, const Score& score);

  // Asks the chief to stop the job with a checkpoint, because this process must
  // end and the job may not be able to continue without it, which the chief
  // decides. Returns false if the chief does not answer, or refuses: another
  // process has taken this one's place, or the chief runs another job.
  bool AskToStop(const std::string& reason);

  // Leaves the job in good order, and ends the heartbeats. `reason` is for
  // people. If the lease expired before the chief received the end of the
  // input, lease_lost() is true and the caller must register again.
  void Leave(LeaveCause cause, const std::string& reason);

  // Must be called when a server has refused this incarnation or closed its
  // tokens, with the newest incarnation that the server named, as
  // Membership::OnNewerIncarnation(); 0: none. The next heartbeat leaves at
  // once: it brings the chief's reason.
  void OnRefusedByServer(uint64_t newest) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the next heartbeat leave at once, for a caller that must know soon
  // whether the job has ended.
  void BeatNow() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    beat_now_ = true;
    changed_.SignalAll();
  }

  // Makes Register(), WaitForPlan() and all other waits return.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // ended() is true once this process must end. end() is the reason: kOk when
  // the job is done, kCancelled when it was stopped, kAborted when it failed,
  // kUnavailable when the chief is gone, or kAlreadyExists when a newer
  // incarnation has replaced this one.
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status end() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if only the lease expired: the membership has ended, but the process
  // may register again.
  bool lease_lost() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

  // As Membership::state_is_spare().
  bool state_is_spare() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if steps are being made, by the chief's newest answer.
  bool job_is_training() const ABSL_LOCKS_EXCLUDED(mutex_);

  // As Membership::last_answer().
  absl::Time last_answer() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return membership_.last_answer();
  }

  // Waits until ended() or Stop(), at most `timeout`; true when ended.
  bool WaitForEnd(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the function to call when ended() becomes true, in the thread that
  // finds out; calls it at once if it is true already. It may be called more
  // than once. After the call of set_on_end() with another function, the old
  // one is not called any more.
  void set_on_end(std::function<void()> on_end)
      ABSL_LOCKS_EXCLUDED(mutex_, on_end_mutex_);

 private:
  Sender Self() const ABSL_LOCKS_EXCLUDED(mutex_);
  v1::Identity Identity() const;
  absl::Time Now() const { return options_.clock->Now(); }
  absl::Status TryRegister(v1::RegisterResponse& response);
  // Repeats TryRegister(), with a newer incarnation if necessary.
  absl::Status RegisterUntilLetIn(v1::RegisterResponse& response)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Repeats a call while its error may pass and the membership lasts.
  absl::Status CallUntilAnswered(absl::FunctionRef<absl::Status()> call);
  absl::Status AwaitPlan(v1::GetPlanResponse& response,
                         const InitialValues& values = {});
  std::vector<VariableSpec> DescribedModel() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Plan> PlanOf(const v1::GetPlanResponse& response,
                              int num_servers) ABSL_LOCKS_EXCLUDED(mutex_);
  void Heartbeats(absl::Duration interval);
  // Waits in the heartbeats' thread; true if that thread must end.
  bool Rest(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  // One heartbeat; returns true when the membership has ended.
  bool Beat() ABSL_LOCKS_EXCLUDED(mutex_);
  void FillHeartbeat(v1::HeartbeatRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnAnswer(v1::HeartbeatResponse& response) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnFailure(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Describes the model to a chief that does not know it.
  void DescribeAgain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles a call other than a heartbeat that failed for good; returns
  // `status`.
  absl::Status Refused(const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_, on_end_mutex_);
  bool MustLeaveAgain(const absl::Status& status, LeaveCause cause)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CallOnEnd() ABSL_LOCKS_EXCLUDED(mutex_, on_end_mutex_);
  // Waits until `over` is true, at most `duration`.
  void WaitUntil(absl::FunctionRef<bool()> over, absl::Duration duration)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the time between two calls, unless Stop() comes first.
  void Pause() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<CoordinatorCalls> calls_;
  const std::unique_ptr<TraceReporter> traces_;  // used by the heartbeats'
                                                 // thread
  std::thread heartbeats_;
  LoadMeter load_meter_;  // only the thread of heartbeats uses it

  mutable Mutex mutex_;
  CondVar changed_;
  Membership membership_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool heartbeats_stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool beat_now_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<VariableSpec> model_ ABSL_GUARDED_BY(mutex_);  // as described
  const std::unique_ptr<KeptMessages> kept_ ABSL_PT_GUARDED_BY(mutex_);

  Mutex on_end_mutex_;  // before mutex_
  std::function<void()> on_end_ ABSL_GUARDED_BY(on_end_mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_CLIENT_H_
