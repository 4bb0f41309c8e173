#include "worker/hosted_chief.h"

#include "common/base/status_macros.h"
#include "common/process/process.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<HostedChief>> HostedChief::Start(
    const Cluster& cluster, const JobConfig& job, const Clock& clock,
    Beginning beginning) {
  std::unique_ptr<HostedChief> hosted(new HostedChief());
  LOCKSTEP_ASSIGN_OR_RETURN(
      hosted->chief_,
      chief::Chief::Make(cluster, job, DrawIncarnation(), clock, beginning));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                            cluster.Address(cluster.self()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      hosted->server_,
      GrpcServer::Start(address, {&hosted->chief_->service()}));
  hosted->thread_ =
      std::thread([h = hosted.get()] { h->status_ = h->chief_->Run(); });
  return hosted;
}

HostedChief::~HostedChief() {
  if (!thread_.joinable()) return;
  chief_->RequestStop("the worker that hosts the chief ended");
  thread_.join();
}

absl::Status HostedChief::Wait() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace lockstep::worker
