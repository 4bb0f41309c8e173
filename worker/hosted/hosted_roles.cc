#include "worker/hosted/hosted_roles.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/job/job_config.h"
#include "common/process/forked_children.h"
#include "common/program/main_support.h"
#include "server/ps_server.h"
#include "worker/hosted/hosted_chief.h"
#include "worker/hosted/hosted_mirror.h"

namespace lockstep::worker {

HostedRoles::HostedRoles() = default;

HostedRoles::~HostedRoles() = default;

std::string HostedRoles::DefaultStateDirectory() {
  return absl::StrCat("/dev/shm/lockstep-", geteuid());
}

absl::StatusOr<std::unique_ptr<HostedRoles>> HostedRoles::Start(
    const Cluster& cluster, const Options& options, const Clock& clock) {
  if (!cluster.IsChief() && !cluster.hosts_mirrors()) return nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string address,
                            cluster.Address(cluster.self()));
  LOCKSTEP_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  CloseSocketsInChildren(parsed.port);
  std::unique_ptr<HostedRoles> roles(new HostedRoles());
  if (cluster.IsChief()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job, LoadJob(options.job));
    LOCKSTEP_ASSIGN_OR_RETURN(
        roles->chief_,
        HostedChief::Start(cluster, job, clock, options.job.beginning,
                           options.recorded));
  }
  if (cluster.hosts_mirrors()) {
    server::PsServer::Options mirror;
    mirror.state_dir =
        options.state_dir.empty() ? DefaultStateDirectory() : options.state_dir;
    mirror.expected_job = options.expected_job;
    mirror.shared_memory = options.shared_memory;
    mirror.chief_wait = options.chief_wait;
    // Only the default directory is removed at the end; one that the user names
    // stays.
    mirror.own_state_dir = mirror.state_dir == DefaultStateDirectory();
    if (roles->chief_ != nullptr) {
      // One server at one address answers for both.
      mirror.more_services = roles->chief_->services();
    }
    LOCKSTEP_ASSIGN_OR_RETURN(roles->mirror_, StartListening([&] {
                                return HostedMirror::Start(cluster, mirror,
                                                           clock);
                              }));
    return roles;
  }
  LOCKSTEP_RETURN_IF_ERROR(StartListening([&]() -> absl::StatusOr<bool> {
                             LOCKSTEP_RETURN_IF_ERROR(
                                 roles->chief_->Serve(address));
                             return true;
                           }).status());
  return roles;
}

void HostedRoles::SetOnStopped(
    std::function<void(const absl::Status& why)> stopped) {
  if (mirror_ != nullptr) mirror_->SetOnStopped(std::move(stopped));
}

bool HostedRoles::carries_job() const {
  return chief_ != nullptr || !mirror_->may_leave();
}

void HostedRoles::RequestStop(const std::string& reason) {
  // The chief's stop reaches this worker as it does all others. A mirror that
  // the job needs asks the chief for it.
  if (chief_ != nullptr) {
    chief_->RequestStop(reason);
  } else {
    mirror_->RequestStop(reason);
  }
}

void HostedRoles::OnWorkerEnded(const absl::Status& status) {
  if (chief_ != nullptr || (status.ok() && carries_job())) return;
  mirror_is_done_ = status.ok();
  mirror_->FollowWorker(status.ok() ? "end of input"
                                    : std::string(status.message()));
}

MetricFamilies HostedRoles::Metrics() const {
  MetricFamilies metrics;
  if (chief_ != nullptr) metrics.Add(chief_->Metrics());
  if (mirror_ != nullptr) metrics.Add(mirror_->Metrics());
  return metrics;
}

std::vector<StatusPage> HostedRoles::Pages() const {
  return chief_ == nullptr ? std::vector<StatusPage>() : chief_->Pages();
}

absl::Status HostedRoles::Wait() {
  // The chief's result is that of the job, so it replaces the mirror's.
  absl::Status status = mirror_ == nullptr ? absl::OkStatus() : mirror_->Wait();
  if (mirror_is_done_) status = absl::OkStatus();
  if (chief_ != nullptr) status = chief_->Wait();
  return status;
}

}  // namespace lockstep::worker
