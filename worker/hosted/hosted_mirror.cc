#include "worker/hosted/hosted_mirror.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<HostedMirror>> HostedMirror::Start(
    const Cluster& cluster, const server::PsServer::Options& options,
    const Clock& clock) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Cluster seen,
      cluster.SeenBy({TaskType::kPs, cluster.self().index}));
  std::unique_ptr<HostedMirror> hosted(new HostedMirror());
  LOCKSTEP_ASSIGN_OR_RETURN(hosted->server_,
                            server::PsServer::Start(seen, options, clock));
  hosted->thread_ = std::thread([h = hosted.get()] { h->Run(); });
  return hosted;
}

void HostedMirror::Run() {
  status_ = server_->Run();
  std::function<void(const absl::Status&)> stopped;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    stopped = on_stopped_;
  }
  // Outside the lock: the callback stops the worker, which may call back.
  if (stopped && EndsWorker()) stopped(status_);
}

bool HostedMirror::EndsWorker() const {
  return absl::IsCancelled(status_) || server_->was_refused();
}

void HostedMirror::SetOnStopped(
    std::function<void(const absl::Status&)> stopped) {
  {
    MutexLock lock(mutex_);
    on_stopped_ = stopped;
    // Run() calls it later; it has not read `on_stopped_` yet. Otherwise the
    // mirror ended before this call.
    if (!ended_) return;
  }
  if (EndsWorker()) stopped(status_);
}

HostedMirror::~HostedMirror() {
  if (!thread_.joinable()) return;
  server_->RequestStop("the worker that hosts this mirror ended");
  thread_.join();
}

absl::Status HostedMirror::Wait() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace lockstep::worker
