#include "worker/hosted/hosted_chief.h"

#include "common/base/status_macros.h"
#include "common/process/process.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<HostedChief>> HostedChief::Start(
    const Cluster& cluster, const JobConfig& job, const Clock& clock,
    Beginning beginning, bool recorded) {
  std::unique_ptr<HostedChief> hosted(new HostedChief());
  LOCKSTEP_ASSIGN_OR_RETURN(
      hosted->chief_,
      chief::Chief::Make(cluster, job, DrawIncarnation(), clock, beginning));
  if (recorded) hosted->pages_ = hosted->chief_->RecordForPage();
  hosted->thread_ =
      std::thread([h = hosted.get()] { h->status_ = h->chief_->Run(); });
  return hosted;
}

absl::Status HostedChief::Serve(const std::string& address) {
  LOCKSTEP_ASSIGN_OR_RETURN(server_,
                            GrpcServer::Start(address, chief_->services()));
  return absl::OkStatus();
}

HostedChief::~HostedChief() {
  if (!thread_.joinable()) return;
  // Only a worker that failed gets here without Wait(); without the stop, the
  // thread would wait for its workers.
  chief_->RequestStop("the worker that hosts the chief ended");
  thread_.join();
}

absl::Status HostedChief::Wait() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace lockstep::worker
