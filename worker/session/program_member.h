#ifndef LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBER_H_
#define LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cluster/cluster.h"
#include "common/observe/status_server.h"
#include "common/plan/figure.h"
#include "common/program/main_support.h"
#include "worker/hosted/hosted_roles.h"
#include "worker/session/session.h"
#include "worker/session/training_member.h"
#include "worker/session/workload.h"

namespace lockstep::worker {

// ProgramMember is the part of a program's process in its job: the worker, and
// the roles that the process hosts besides it, which are the chief or a mirror.
//
// Threads: safe to share; Run() must be called once.
// Borrows: the workload.
class ProgramMember {
 public:
  // Starts the hosted roles. Errors as Session::Join().
  static absl::StatusOr<std::unique_ptr<ProgramMember>> Make(
      const Cluster& cluster, const CommonFlags& flags,
      const Session::Options& options, Workload& workload);

  // Trains; then waits until the hosted roles have ended, too. The result is
  // that of Session::end().
  absl::Status Run() ABSL_LOCKS_EXCLUDED(mutex_);

  // As the methods of Session.
  void RequestStop(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Report(const NamedFigure& figure);
  // False for a process that hosts no role.
  bool carries_job() const;
  // The worker leaves at once, and the hosted roles go on.
  void LeaveAtOnce();

 private:
  ProgramMember() = default;

  absl::Status Host(const Cluster& cluster, const CommonFlags& flags,
                    const Session::Options& options);
  // Marks the end of the worker's own part; returns the reason of a Fail()
  // before it.
  std::optional<std::string> EndMember() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MemberEnded() ABSL_LOCKS_EXCLUDED(mutex_);

  std::unique_ptr<TrainingMember> member_;
  std::unique_ptr<HostedRoles> hosted_;  // null: none
  std::unique_ptr<StatusServer> status_server_;
  Mutex mutex_;
  std::optional<std::string> fault_ ABSL_GUARDED_BY(mutex_);  // Fail()'s reason
  // The worker's own part is over; hosted roles may still run.
  bool member_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PROGRAM_MEMBER_H_
