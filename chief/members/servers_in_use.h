#ifndef LOCKSTEP_CHIEF_MEMBERS_SERVERS_IN_USE_H_
#define LOCKSTEP_CHIEF_MEMBERS_SERVERS_IN_USE_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/members/membership_table.h"
#include "chief/servers/server_report.h"
#include "common/cluster/task_id.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// ServersInUse decides which servers of the cluster take part in the job. All
// do, except in an elastic job of mirrors: there mirror i takes part while
// worker i is one of the job's workers, and a mirror that does not come back is
// given up. Mirror 0, which commits, always takes part. A job of mirrors that
// makes no more steps does without any other mirror, too: each has all that a
// checkpoint needs.
//
// A chief that has just started does not know the workers of an elastic job. It
// begins with the mirrors that are alive, and learns the workers from their
// state: from that of mirror 0, or if it has none from the newest of the
// others, which may not be the last word.
//
// Threads: belongs to the chief's loop.
// Borrows: the job and the members.
class ServersInUse {
 public:
  // `anew`: the job begins anew, whatever state there is.
  ServersInUse(const JobConfig& job, const MembershipTable& members,
               bool anew = false);

  // True if some servers may take no part.
  bool may_change() const { return may_change_; }

  // The servers that must take part, ascending.
  std::vector<int> Needed() const;
  bool TakesPart(int server) const;
  // The servers to begin a round with.
  std::vector<int> ForRound() const;
  // The servers for which a round has to wait, because they are not alive.
  std::vector<TaskId> Away() const;
  // The servers that are not alive, for the first round of a chief that has
  // waited since `began`. If the job may not need all servers, the result is
  // empty once the chief has waited, and mirror 0 has been alive, for a lease.
  std::vector<TaskId> AwayAtFirst(absl::Time began, absl::Time now) const;

  // Sets the job's workers, ascending; those beyond the servers do not count.
  void SetWorkers(const std::vector<int>& workers);

  // Records the reports of a round before the first opening. Returns true if
  // some may take no part and a server has state: SetWorkers() must follow,
  // with the workers of the settings in it.
  bool OnFound(absl::Span<const ServerReport> reports);
  // True if the job starts, so that it needs all servers, and one is away.
  bool AwaitsAll() const;
  // Records that the servers are open.
  void OnOpened();
  // Records that the job makes no more steps. No effect before the servers were
  // open.
  void EndSteps();
  // False if steps need a mirror that was given up since EndSteps().
  bool CanMakeSteps() const { return is_elastic_ || given_up_.empty(); }
  // Records that the job makes steps again, or still; a round must follow.
  void BeginStepsAgain();

  // Gives up the mirrors that have left, or have been away for a lease since
  // `since`; with `at_once`, all that are away. Returns them.
  std::vector<int> GiveUp(absl::Time since, absl::Time now,
                          bool at_once = false);
  // The first time at which GiveUp() gives up all mirrors that are away, if
  // none comes back; InfiniteFuture() if it may not give them up now.
  absl::Time AllGivenUpAt(absl::Time since) const;
  const std::set<int>& given_up() const { return given_up_; }
  // True if one of `servers`, those that were open last, is given up: it may
  // have the state when all others have lost it.
  bool HasGivenUpOneOf(const std::vector<int>& servers) const;
  // True if a mirror that was given up is alive again, while its worker is
  // still one of the job's.
  bool IsOneBack() const;
  // Must be called before a round: mirrors that are back take part again.
  // Returns them.
  std::vector<int> TakeBack();
  // Records that a mirror which was given up may be the only one with the
  // state. All take part again, and GiveUp() gives up none until a mirror comes
  // that is away now, and may have the state, or until the servers are open.
  void OnStateElsewhere();

 private:
  // The state that the first round has found.
  enum class Found {
    kNone,      // no server has any: the job starts, and needs all servers
    kOfOthers,  // mirror 0 has lost it
    kOfFirst    // mirror 0 has it
  };

  bool IsAlive(int server) const;
  // True if a mirror that takes part may be given up, if it is away.
  bool MayGiveUp() const;
  absl::Time GivenUpAt(int server, absl::Time since) const;
  std::vector<int> Alive() const;
  std::vector<int> All() const;

  const MembershipTable& members_;
  const absl::Duration lease_;
  const bool is_elastic_;
  const bool is_mirrored_;
  bool may_change_;
  const bool anew_;
  std::set<int> workers_;   // with a mirror
  std::set<int> given_up_;  // of workers_
  bool opened_ = false;
  bool has_found_ = false;  // a round of this chief
  Found found_ = Found::kNone;
  std::vector<int> found_with_;  // the servers of that round
  // The servers that were alive when the state was elsewhere.
  std::optional<std::vector<int>> without_state_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_MEMBERS_SERVERS_IN_USE_H_
