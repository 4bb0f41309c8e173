#ifndef LOCKSTEP_CHIEF_JOB_SERVERS_WAIT_H_
#define LOCKSTEP_CHIEF_JOB_SERVERS_WAIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/events/job_actions.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// ServersWait is the wait until all servers are there, before a round that
// brings them together and between such rounds. The job stands still meanwhile.
//
// Threads: belongs to the chief's loop.
// Borrows: the job.
class ServersWait {
 public:
  explicit ServersWait(const JobConfig& job) : job_(job) {}

  // Begins the wait. If it had begun before, its time starts again.
  void Begin(absl::Time now);
  absl::Time began() const { return began_; }
  // Records that a round has failed for a reason that may pass.
  void RoundFailed(const absl::Status& why, absl::Time now);

  // The servers that are not alive.
  struct Absent {
    std::vector<TaskId> servers = {};
    // The time at which the job goes on without them; infinite: it does not.
    absl::Time given_up_at = absl::InfiniteFuture();
  };
  // True if a round must begin now. `stop` is StoppedStatus(), or kOk.
  //
  //   kDeadlineExceeded    the wait has lasted for max_wait, in which the
  //                        longest round does not count
  //   kFailedPrecondition  the job must stop, and for a lease a server has not
  //                        come or rounds have failed
  absl::StatusOr<bool> Ready(const Absent& absent, const absl::Status& stop,
                             absl::Time now, JobActions& out);

  // Reports that servers create their variables. `what` is the text of one
  // server's progress.
  void ReportWork(const std::string& what, absl::Time now, JobActions& out);

 private:
  // Reports the wait for `whom`. `end` is a text about the end of the wait; may
  // be empty.
  void Report(const std::string& whom, const std::string& end, absl::Time now,
              JobActions& out);
  std::string TextOfEnd(const Absent& absent, absl::Time now) const;

  const JobConfig& job_;
  absl::Time began_ = absl::InfinitePast();
  absl::Time round_began_ = absl::InfinitePast();
  absl::Time failing_since_ = absl::InfinitePast();  // the first failed round
  absl::Duration longest_round_;                     // of those that failed
  std::string failed_;  // the error of the last round
  std::string said_;    // the absent servers that were last reported
  absl::Time said_at_ = absl::InfinitePast();
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_SERVERS_WAIT_H_
