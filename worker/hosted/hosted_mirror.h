#ifndef LOCKSTEP_WORKER_HOSTED_HOSTED_MIRROR_H_
#define LOCKSTEP_WORKER_HOSTED_HOSTED_MIRROR_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/cluster/cluster.h"
#include "common/metrics/metric_families.h"
#include "server/ps_server.h"

namespace lockstep::worker {

// HostedMirror is a worker's mirror in the worker's process, for a cluster
// without ps tasks. It has the worker's index and address.
//
// Threads: RequestStop(), FollowWorker(), may_leave() and Metrics() may be
//          called from any thread.
class HostedMirror {
 public:
  // `cluster` must come from Cluster::WithMirrors(). Errors as
  // PsServer::Start().
  static absl::StatusOr<std::unique_ptr<HostedMirror>> Start(
      const Cluster& cluster, const server::PsServer::Options& options,
      const Clock& clock);
  // Ends the mirror if it still serves. That stops the job, unless may_leave().
  ~HostedMirror();

  // Calls `stopped` if the mirror ends because it or the job was stopped
  // (kCancelled), or because the chief refused to let it in again; with its
  // result. It must make the worker end, too. `stopped` runs in another thread,
  // or in this call if the mirror has ended already. What it uses must stay
  // valid until Wait() has returned or this object is gone. Must be called at
  // most once.
  void SetOnStopped(std::function<void(const absl::Status& why)> stopped)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As PsServer::RequestStop(), FollowWorker() and may_leave().
  void RequestStop(const std::string& reason) { server_->RequestStop(reason); }
  void FollowWorker(const std::string& reason) {
    server_->FollowWorker(reason);
  }
  bool may_leave() const { return server_->may_leave(); }

  MetricFamilies Metrics() const { return server_->Metrics(); }

  // Waits until the job has ended, or this mirror has left it. Returns the
  // status of PsServer::Run().
  absl::Status Wait();

 private:
  HostedMirror() = default;

  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // After Run(): true if the worker must end as well.
  bool EndsWorker() const;

  std::unique_ptr<server::PsServer> server_;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(const absl::Status&)> on_stopped_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOSTED_HOSTED_MIRROR_H_
