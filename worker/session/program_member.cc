#include "worker/session/program_member.h"

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<ProgramMember>> ProgramMember::Make(
    const Cluster& cluster, const CommonFlags& flags,
    const Session::Options& options, Workload& workload) {
  std::unique_ptr<ProgramMember> made(new ProgramMember());
  LOCKSTEP_ASSIGN_OR_RETURN(
      made->member_,
      TrainingMember::Make(cluster,
                           {.expected_job = options.expected_job,
                            .shared_memory = options.shared_memory,
                            .pollers = options.pollers,
                            .connections = options.connections,
                            .chief_wait = options.chief_wait},
                           workload, Clock::Real()));
  LOCKSTEP_RETURN_IF_ERROR(made->Host(cluster, flags, options));
  return made;
}

absl::Status ProgramMember::Host(const Cluster& cluster,
                                 const CommonFlags& flags,
                                 const Session::Options& options) {
  HostedRoles::Options roles;
  LOCKSTEP_ASSIGN_OR_RETURN(
      roles.job, JobOfProgram({options.job_file, options.settings, {}}));
  roles.recorded = !flags.status_address.empty();
  roles.state_dir = OptionOfProgram(options.state_dir, "LOCKSTEP_STATE_DIR");
  roles.expected_job = options.expected_job;
  roles.shared_memory = options.shared_memory;
  roles.chief_wait = options.chief_wait;
  LOCKSTEP_ASSIGN_OR_RETURN(hosted_,
                            HostedRoles::Start(cluster, roles, Clock::Real()));
  if (hosted_ == nullptr) return absl::OkStatus();
  hosted_->SetOnStopped(
      [this](const absl::Status& why) { member_->OnMirrorEnded(why); });
  LOCKSTEP_ASSIGN_OR_RETURN(
      status_server_, ServeStatus(
                          flags, cluster, [this] { return hosted_->Metrics(); },
                          [this] { return hosted_->Pages(); }));
  return absl::OkStatus();
}

absl::Status ProgramMember::Run() {
  const absl::Status status = member_->Run();
  if (hosted_ == nullptr) return status;
  if (const std::optional<std::string> why = EndMember(); why.has_value()) {
    // After this worker has left with its reason: a job that cannot do without
    // it fails with that, and only one that can is stopped here.
    hosted_->RequestStop(*why);
  } else if (member_->stays_member()) {
    // The job would wait for this worker, and this process for the job.
    hosted_->RequestStop(std::string(status.message()));
  } else if (!status.ok() || member_->input_ended()) {
    hosted_->OnWorkerEnded(status);
  }
  const absl::Status job = hosted_->Wait();
  return status.ok() ? job : status;
}

std::optional<std::string> ProgramMember::EndMember() {
  MutexLock lock(mutex_);
  member_ended_ = true;
  return fault_;
}

void ProgramMember::Fail(const std::string& reason) {
  bool late = false;
  {
    MutexLock lock(mutex_);
    fault_ = reason;
    late = member_ended_;
  }
  member_->Fail(reason);
  // Nothing else would end the roles: this worker left before the fault.
  if (late && hosted_ != nullptr) hosted_->RequestStop(reason);
}

bool ProgramMember::MemberEnded() {
  MutexLock lock(mutex_);
  return member_ended_;
}

void ProgramMember::RequestStop(const std::string& reason) {
  // The worker leaves first where it can, and its mirror follows.
  if (hosted_ != nullptr && (carries_job() || MemberEnded())) {
    hosted_->RequestStop(reason);
  } else {
    member_->RequestStop(reason);
  }
}

absl::Status ProgramMember::Report(const NamedFigure& figure) {
  return member_->Report(figure);
}

bool ProgramMember::carries_job() const {
  return hosted_ != nullptr && hosted_->carries_job();
}

void ProgramMember::LeaveAtOnce() {
  // A repeated request makes an elastic worker leave at once.
  member_->RequestStop("the program has ended");
}

}  // namespace lockstep::worker
