#ifndef LOCKSTEP_CHIEF_OPERATORS_MEMBER_ANSWERS_H_
#define LOCKSTEP_CHIEF_OPERATORS_MEMBER_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/members/gpu_counts.h"
#include "chief/members/membership_table.h"
#include "chief/operators/member_job.h"
#include "chief/operators/settings_table.h"
#include "chief/operators/status_table.h"
#include "common/job/job_config.h"
#include "common/plan/example_shape.h"
#include "common/plan/leave_cause.h"
#include "common/plan/process_load.h"
#include "common/plan/progress.h"
#include "common/plan/variable_spec.h"
#include "common/wire/sender.h"

namespace lockstep::chief {

// MemberAnswers decides the chief's answers to processes that register, send
// heartbeats, describe the model and leave, from the chief's tables and the
// time. It knows no messages and reads no clock.
//
// Threads: safe to share.
// Borrows: the tables.
// Errors:  a call that fails may have changed the tables: a heartbeat that a
//          member's share of the data makes fail counts all the same.
class MemberAnswers {
 public:
  struct Options {
    std::string job_id = {};
    JobConfig job = {};  // with replicas filled in
    int num_workers = 0;
    int protocol = 0;  // the version that the chief speaks
    absl::Time began = absl::InfinitePast();  // this chief
    uint64_t job_fingerprint = 0;             // differs between job files
  };

  MemberAnswers(Options options, MembershipTable& members,
                StatusTable& status_table, SettingsTable& settings_table);

  // The time for which a chief waits for a worker that describes the model
  // before it asks the servers.
  static constexpr absl::Duration kWorkersDescribe = absl::Seconds(5);

  // Checks that the sender is of this job.
  //
  //   kFailedPrecondition  it is of another one
  absl::Status CheckJob(const Sender& sender) const;
  // Checks that the sender is a member of this job, and renews its lease.
  //
  //   as CheckJob() and MembershipTable::Heartbeat()
  absl::Status CheckMember(const Sender& sender, absl::Time now);

  // A process that wants to be a member.
  struct Registration {
    Sender sender = {};  // its job id may be empty
    int protocol = 0;
    std::string program = {};       // its version, for messages
    std::string expected_job = {};  // the name of the job; empty: any
    bool again = false;             // it has been a member before
    int gpus = 0;                   // of a worker; 0: its CPU
  };
  // Checks that the process means this job and can take part in it. Must
  // succeed before Register(): a process of another job or version must learn
  // that, and nothing else.
  //
  //   kFailedPrecondition  another protocol or job
  absl::Status CheckIsMeant(const Registration& registration) const;
  struct Registered {
    // The reason for which the process must end and must not register again;
    // empty: it is a member.
    std::string taken_out = {};
    bool is_new = false;  // false: a member has repeated the call
    MemberJob job = {};
  };
  //   as SettingsTable::CheckTakesPart(), GpuCounts::Add() and
  //   MembershipTable::Register()
  absl::StatusOr<Registered> Register(const Registration& registration,
                                      absl::Time now);

  struct Heartbeat {
    Sender sender = {};
    int protocol = 0;
    std::optional<Progress> progress = {};
    std::optional<ProcessLoad> load = {};
    int gpus = 0;                   // as in its registration
    std::vector<int> workers = {};  // as the answer to its registration said
    uint64_t job_fingerprint = 0;   // likewise; 0: not known
  };
  struct Heard {
    StatusTable::View job = {};
    bool model_wanted = false;  // the sender must describe the model
    bool leave = false;         // an operator removes this worker
  };
  // Takes over a member of an earlier chief.
  //
  //   kAborted             it must register again, with a new incarnation
  //   kAlreadyExists       a newer process has its task: it must not come back
  //   kFailedPrecondition  another job, or another protocol than that of the
  //                        chief, which does not take it over
  //   also as MembershipTable::TakeOver() and Heartbeat()
  // Servers hear that the job is done only once no worker needs them, or after
  // kLastPulls.
  absl::StatusOr<Heard> Hear(const Heartbeat& heartbeat, absl::Time now);

  // Checks that the sender may describe the model, and renews its lease. Must
  // succeed before Describe().
  //
  //   kInvalidArgument  neither a worker nor a server; or as CheckMember()
  absl::Status CheckDescribes(const Sender& sender, absl::Time now);
  // `num_examples`: of training; 0: not known.
  //
  //   kInvalidArgument  too large, not possible, or not the model that another
  //                     process has described
  absl::Status Describe(const std::vector<VariableSpec>& variables,
                        const std::optional<ExampleShape>& examples,
                        int64_t num_examples);

  // Ends the sender's membership. A cause that this job cannot have counts as
  // kStopped.
  //
  //   as CheckJob(), MembershipTable::TakeOver() and Leave()
  absl::Status Leave(const Sender& sender, LeaveCause cause,
                     const std::string& reason,
                     const std::optional<Progress>& progress, absl::Time now);

 private:
  LeaveCause Believed(LeaveCause cause) const;
  // True if the job is done, but a worker may still pull its last values from
  // the server of that index.
  bool AwaitsLastPulls(int server, const StatusTable::View& job,
                       absl::Time now) const;
  // Takes over the sender if this chief does not know it yet.
  absl::Status TakeOver(const Heartbeat& heartbeat, absl::Time now);

  const Options options_;
  MembershipTable& members_;
  StatusTable& status_table_;
  SettingsTable& settings_table_;
  GpuCounts gpus_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_MEMBER_ANSWERS_H_
