#ifndef LOCKSTEP_WORKER_HOSTED_HOSTED_ROLES_H_
#define LOCKSTEP_WORKER_HOSTED_HOSTED_ROLES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/cluster/cluster.h"
#include "common/metrics/metric_families.h"
#include "common/observe/status_server.h"
#include "common/program/main_support.h"

namespace lockstep::worker {

class HostedChief;
class HostedMirror;

// HostedRoles are the roles that a worker's process has besides the worker, all
// served at the worker's address: the chief if the cluster has no chief task,
// and the worker's mirror if it has no ps task.
//
// Threads: carries_job(), RequestStop(), Metrics() and Pages() may be called
//          from any thread.
class HostedRoles {
 public:
  struct Options {
    JobFlags job = {};  // of the chief
    // The mirror's, as in PsServer::Options; empty: DefaultStateDirectory().
    std::string state_dir = {};
    std::string expected_job = {};
    bool shared_memory = true;
    absl::Duration chief_wait = absl::InfiniteDuration();
    bool recorded = false;  // as for HostedChief::Start()
  };

  // The default of a mirror's state_dir: a directory on a memory file system.
  // It is removed in the end.
  static std::string DefaultStateDirectory();

  // Starts the roles of this task and listens on its address; null if there are
  // none. Errors: those of LoadJob(), HostedChief::Start() and
  // HostedMirror::Start()
  static absl::StatusOr<std::unique_ptr<HostedRoles>> Start(
      const Cluster& cluster, const Options& options, const Clock& clock);

  ~HostedRoles();

  // As HostedMirror::SetOnStopped().
  void SetOnStopped(std::function<void(const absl::Status& why)> stopped);

  // True if the job cannot go on without this process. False if it only has a
  // mirror that PsServer::may_leave() describes, of a job with elastic workers:
  // a stop must then go to the worker, which finishes its pass before it
  // leaves, and OnWorkerEnded() follows.
  bool carries_job() const;

  // If carries_job(), stops the job, by the chief of this process or by a
  // request of the mirror (see PsServer::RequestStop()). Otherwise the mirror
  // alone leaves the job.
  void RequestStop(const std::string& reason);

  // Must be called if the worker of this process has left the job because it
  // has failed or was stopped. Makes the mirror end, unless the chief is in
  // this process, too: the chief then decides by the reason with which the
  // worker has left. May also be called with OK if the worker's input has
  // ended: a mirror without which the job goes on ends, and Wait() returns OK
  // for it.
  //
  // Must not be called if TrainingMember::stays_member(), because the chief
  // waits for such a worker: the process must end, by EndProcessNow(), or if
  // that is impossible by RequestStop().
  void OnWorkerEnded(const absl::Status& status);

  MetricFamilies Metrics() const;
  std::vector<StatusPage> Pages() const;

  // Waits until all roles have ended, or have left the job. Returns the status
  // of the chief if it is in this process, otherwise that of the mirror.
  absl::Status Wait();

 private:
  HostedRoles();

  std::unique_ptr<HostedChief> chief_;
  // After the chief, so that it ends first: it serves the chief's calls.
  std::unique_ptr<HostedMirror> mirror_;
  bool mirror_is_done_ = false;  // it ends after a worker without input
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOSTED_HOSTED_ROLES_H_
