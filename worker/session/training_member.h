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

// TrainingMember is one worker task's part in a job, from registration to the
// end of the job: it keeps the membership, describes the workload's variables,
// and makes the passes of the job's steps. When the chief takes it for dead by
// mistake it joins again.
//
// Threads: RequestStop(), Fail() and progress() may be called from any thread.
// Borrows: the workload.
class TrainingMember {
 public:
  struct Options {
    std::string expected_job;   // job name to insist on; empty: any
    int gpus = 0;               // as ChiefClient::Options has it
    bool shared_memory = true;  // with servers of this host
    int pollers = 0;            // threads, as CallPoller takes them
    int connections = 0;        // as ParameterClient takes them
    // As ChiefClient::Options has it.
    absl::Duration chief_wait = absl::InfiniteDuration();
  };

  //   kInvalidArgument  no ps or no chief in the cluster
  static absl::StatusOr<std::unique_ptr<TrainingMember>> Make(
      const Cluster& cluster, const Options& options, Workload& workload,
      const Clock& clock);

  // Trains until the job ends.
  //
  //   kOk         training is over, or the input is
  //   kCancelled  the job was stopped, or this worker
  //   others      the job failed, the chief is gone, or this worker cannot
  //               take part: the errors of the workload among them
  absl::Status Run();

  // The counts of its passes so far.
  Progress progress() const { return meter_.Get(); }

  // As ProgressMeter::Report().
  absl::Status Report(const NamedFigure& figure) {
    return meter_.Report(figure);
  }

  // Leaves the job in good order: at once; a worker of an elastic job ends its
  // pass first, unless that takes long or it is asked again.
  void RequestStop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the job at once, as a worker that cannot take part and would fail
  // again: if too few workers are left for a step, the job fails for `reason`.
  void Fail(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

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
  // Leaves after the pass at hand, or at once; Run() will return `why`.
  void Leave(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void StopNow(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what Run() has to, given the loop's status: waits for the chief's
  // verdict where that decides.
  absl::Status Judge(const absl::Status& loop, const JobConfig& job);
  // The same for a growing table that is full, which is no error if the pass
  // that found it so came after the last step; the chief's next heartbeat says.
  absl::Status JudgeNoRoom(const absl::Status& loop, absl::Duration heartbeat);
  // A server has refused this incarnation, and the chief does not say why. True
  // if joining anew is worth a try: not if it has not helped for max_wait.
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
  // How long a worker whose loop has ended waits for the chief's verdict.
  absl::Duration max_wait_;
  bool refused_ = false;  // the membership is given up for a new one
  // The first refusal since the last pass, and how many passes that were.
  absl::Time refused_since_ = absl::InfiniteFuture();
  int64_t refused_at_pass_ = -1;

  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::Status> stop_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> leave_ ABSL_GUARDED_BY(mutex_);  // after the pass
  bool elastic_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // this object is about to
  ParameterClient* client_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> leaving_ = false;
  std::thread patience_;  // with a pass that is to be ended
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_TRAINING_MEMBER_H_
