#ifndef LOCKSTEP_CHIEF_BACKUPS_MEMBER_NEWS_H_
#define LOCKSTEP_CHIEF_BACKUPS_MEMBER_NEWS_H_

#include <vector>

#include "absl/time/time.h"
#include "chief/backups/backup_tuner.h"
#include "chief/backups/push_tuner.h"
#include "chief/members/membership_table.h"

namespace lockstep::chief {

// Passes the newest reports of all workers to the tuner. Workers report every
// `heartbeat_interval`.
void HearMembers(const std::vector<MembershipTable::Member>& members,
                 absl::Duration heartbeat_interval, absl::Time now,
                 BackupTuner& tuner);
// Passes the newest reports of all workers to the tuner of pushes.
void HearMembers(const std::vector<MembershipTable::Member>& members,
                 PushTuner& tuner);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_MEMBER_NEWS_H_
