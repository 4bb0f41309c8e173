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

// HostedMirror is a worker's mirror in the worker's process, where the cluster
// has no ps task: the server of the worker's index, at the worker's address.
//
// Threads: RequestStop() and Metrics() may be called from any thread.
class HostedMirror {
 public:
  // `cluster` is one of Cluster::WithMirrors(). Errors as PsServer::Start().
  static absl::StatusOr<std::unique_ptr<HostedMirror>> Start(
      const Cluster& cluster, const server::PsServer::Options& options,
      const Clock& clock);
  // Stops the job if it still runs: it cannot go on without this mirror.
  ~HostedMirror();

  // Calls `stopped`, in another thread or in this one, if the mirror ends
  // because it or the job was asked to stop: the worker must end then, too.
  // Must be called at most once.
  void SetOnStopped(std::function<void(const std::string& why)> stopped)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As PsServer::RequestStop().
  void RequestStop(const std::string& reason) { server_->RequestStop(reason); }

  MetricFamilies Metrics() const { return server_->Metrics(); }

  // Waits until the job has ended; returns how, as PsServer::Run().
  absl::Status Wait();

 private:
  HostedMirror() = default;

  // Loop of the thread.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  std::unique_ptr<server::PsServer> server_;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(const std::string&)> on_stopped_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOSTED_HOSTED_MIRROR_H_
