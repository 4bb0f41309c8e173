#ifndef LOCKSTEP_WORKER_SESSION_TRAINING_MEMBER_H_
#define LOCKSTEP_WORKER_SESSION_TRAINING_MEMBER_H_

#include <atomic>
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
#include "common/cluster/cluster.h"
#include "common/job/variable_settings.h"
#include "common/membership/chief_client.h"
#include "worker/client/parameter_client.h"
#include "worker/loop/progress_meter.h"
#include "worker/session/workload.h"

namespace lockstep::worker {

// TrainingMember is one worker task in a job, from registration to the end of
// the job: it keeps the membership, describes the workload's variables to the
// chief, and makes the passes of the job's steps. If its lease expires though
// it lives, it joins again.
//
// Threads: RequestStop(), Fail() and progress() may be called from any thread.
// Borrows: the workload.
class TrainingMember {
 public:
  struct Options {
    std::string expected_job = {};  // job name to insist on; empty: any
    int gpus = 0;                   // as ChiefClient::Options::gpus
    bool shared_memory = true;      // with servers of this host
    int pollers = 0;                // threads, as CallPoller takes them
    int connections = 0;            // as ParameterClient::Options::connections
    // How long to wait for a chief that has never answered.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  //   kInvalidArgument  the cluster has no ps or no chief; `pollers` or
  //                     `connections` is not from 0 to 16
  static absl::StatusOr<std::unique_ptr<TrainingMember>> Make(
      const Cluster& cluster, const Options& options, Workload& workload,
      const Clock& clock);

  // Trains until the job ends. Must be called at most once.
  //
  //   kOk         training or the input has ended
  //   kCancelled  the job or this worker was stopped
  //   others      the job failed, the chief is gone, or this worker cannot
  //               take part, for instance after an error of the workload
  absl::Status Run();

  // After Run(): true if the worker has not left the job, since its device is
  // lost. The process must end, and a restarted one takes its place.
  bool stays_member() const { return stays_member_; }

  // After Run(): true if the worker has left since its input has ended.
  bool input_ended() const { return input_ended_; }

  // The counts of this worker's passes so far.
  Progress progress() const { return meter_.Get(); }

  // As ProgressMeter::Report().
  absl::Status Report(const NamedFigure& figure) {
    return meter_.Report(figure);
  }

  // Leaves the job in good order. In an elastic job the worker finishes its
  // pass first, unless that takes more than 10 s or RequestStop() is called
  // again; in others it leaves at once.
  void RequestStop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the job at once, as a worker that would fail again after a restart:
  // if too few workers are left for a step, the job fails with `reason`.
  void Fail(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Must be called when the mirror in this process has ended before the worker,
  // with HostedMirror's reason: as RequestStop() if that is kCancelled, and
  // held if that is; at once with that reason if it is kUnavailable, which asks
  // for a restart; else as Fail().
  void OnMirrorEnded(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  ~TrainingMember();

 private:
  TrainingMember(const Cluster& cluster, std::vector<std::string> servers,
                 ChiefClient::Options chief, const Options& options,
                 Workload& workload, const Clock& clock);

  // One membership, from registration to its end.
  absl::Status RunOnce();
  ParameterClient::Options ClientOptions(
      const ChiefClient::Registration& membership, bool mirrored,
      const std::vector<VariableSettings>& settings) const;
  absl::Status Train(const ChiefClient::Registration& membership);
  void SetClient(ParameterClient* client) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the loop, because the job has ended. If the job is done and the
  // workload wants its last values, the loop may first end by itself: the
  // servers stay for some seconds.
  void OnEnd(ParameterClient& client) ABSL_LOCKS_EXCLUDED(mutex_);
  // As RequestStop(). Makes Run() return `why`.
  void Stop(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Make Run() return `why`: Leave() after the current pass, or after
  // kLeaveGrace if the pass takes longer; StopNow() at once.
  void Leave(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void StopNow(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the status with which Run() must end, given the loop's. If only the
  // chief can decide that, waits for the end of the job.
  absl::Status Judge(const absl::Status& loop, const JobConfig& job);
  // Must be called when a server has refused this incarnation and the chief
  // gives no reason. Returns true if a new registration is worth a try: false
  // once registrations have brought no pass for max_wait.
  bool MayJoinAgain();

  const TaskId task_;
  const std::vector<std::string> servers_;
  const bool shared_memory_;
  const int pollers_;
  const int connections_;
  Workload& workload_;
  const Clock& clock_;
  ProgressMeter meter_;
  ChiefClient chief_;
  // The job's max_wait: how long a worker whose loop was cancelled waits for
  // the chief to end the job.
  absl::Duration max_wait_;
  bool refused_ = false;  // Run() must register again
  bool stays_member_ = false;
  bool input_ended_ = false;
  // The time of the first refusal since an incarnation with a pass.
  absl::Time refused_since_ = absl::InfiniteFuture();

  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::Status> stop_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> leave_ ABSL_GUARDED_BY(mutex_);  // after the pass
  bool elastic_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the destructor has begun
  ParameterClient* client_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> leaving_ = false;
  std::thread patience_;  // stops the current pass after kLeaveGrace
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_TRAINING_MEMBER_H_
