#ifndef LOCKSTEP_CHIEF_JOB_FAREWELL_H_
#define LOCKSTEP_CHIEF_JOB_FAREWELL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/job/checkpoint_driver.h"
#include "chief/job/job_context.h"
#include "chief/members/membership_table.h"

namespace lockstep::chief {

// Farewell lets all members learn how the job ended, and gives them time to
// leave and a launcher time to read the last status.
//
//   telling -> leaving -> lingering -> over
//
// Threads: belongs to the chief's loop.
// Borrows: the context and the checkpoints.
class Farewell {
 public:
  // The time that members have to learn how the job ended.
  static constexpr absl::Duration kLeaveGrace = absl::Seconds(10);
  // The time that a launcher needs to read the last status.
  static constexpr absl::Duration kLinger = absl::Milliseconds(600);
  // A chief that has just started learns of its members from their heartbeats.
  // It waits for kFirstBeats heartbeats, and at least for kFirstContact,
  // because members must first notice that their connections to the previous
  // chief are lost.
  static constexpr int kFirstBeats = 4;
  static constexpr absl::Duration kFirstContact = absl::Seconds(2);

  Farewell(JobContext& context, CheckpointDriver& checkpoints)
      : context_(context), checkpoints_(checkpoints) {}

  // Begins with the end of the job. `why_done` is the reason if it ended well.
  void Begin(const absl::Status& ended, const std::string& why_done);

  // Must be called at each tick. If a checkpoint is still being written,
  // members learn of the end only after it; of a failure, once the write has
  // taken max_wait at the latest. Returns true once the farewell is over.
  bool GoOn();

  const absl::Status& ended() const { return ended_; }

 private:
  // True if members must not learn of the end yet.
  bool AwaitsCheckpoint() const;
  // Publishes the end to the members.
  void Tell();
  // The time that `members` have to register with a chief that has just
  // started.
  absl::Duration JoinGrace(
      const std::vector<MembershipTable::Member>& members) const;
  // True if a member that is alive, or may still join, has not left yet.
  bool AwaitsLeaves() const;

  JobContext& context_;
  CheckpointDriver& checkpoints_;
  absl::Time began_;
  absl::Status ended_;
  std::string why_done_;
  std::optional<absl::Time> told_;
  std::optional<absl::Time> left_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_FAREWELL_H_
