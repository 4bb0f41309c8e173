#ifndef LOCKSTEP_WORKER_WORKER_H_
#define LOCKSTEP_WORKER_WORKER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "worker/model_workload.h"
#include "worker/session/training_member.h"

namespace lockstep::worker {

// Worker is the role of the `worker` program: a TrainingMember whose workload
// is a built-in model.
//
// Threads: RequestStop(), OnMirrorEnded() and progress() may be called from any
// thread.
class Worker {
 public:
  struct Options {
    std::string device = "auto";    // backend of worker/compute
    int compute_threads = 1;        // of the CPU backend; 0: one per core
    std::string expected_job = {};  // job name to insist on; empty: any
    bool shared_memory = true;      // with servers of this host
    int pollers = 0;                // threads, as CallPoller takes them
    int connections = 0;            // as ParameterClient takes them
    // As in ChiefClient::Options.
    absl::Duration chief_wait = absl::InfiniteDuration();
    std::vector<std::string> data_roots = {};  // as for CheckWorkerFiles()
  };

  //   kInvalidArgument     no such backend
  //   kFailedPrecondition  the backend is not part of this build
  static absl::StatusOr<std::unique_ptr<Worker>> Make(const Cluster& cluster,
                                                      const Options& options,
                                                      const Clock& clock);

  // Trains until the job ends. Returns as TrainingMember::Run().
  absl::Status Run() { return member_->Run(); }
  // As TrainingMember::stays_member().
  bool stays_member() const { return member_->stays_member(); }

  // The counts of this worker's passes so far.
  Progress progress() const { return member_->progress(); }

  // Leaves the job in good order, as TrainingMember::RequestStop().
  void RequestStop(const std::string& reason) { member_->RequestStop(reason); }
  // As TrainingMember::OnMirrorEnded().
  void OnMirrorEnded(const absl::Status& why) { member_->OnMirrorEnded(why); }

 private:
  explicit Worker(std::unique_ptr<ModelWorkload> workload)
      : workload_(std::move(workload)) {}

  const std::unique_ptr<ModelWorkload> workload_;
  std::unique_ptr<TrainingMember> member_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_WORKER_H_
