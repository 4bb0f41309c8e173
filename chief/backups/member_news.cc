#include "chief/backups/member_news.h"

namespace lockstep::chief {

void HearMembers(const std::vector<MembershipTable::Member>& members,
                 absl::Time now, BackupTuner& tuner) {
  for (const MembershipTable::Member& member : members) {
    if (member.task.type != TaskType::kWorker) continue;
    const Progress& progress = member.progress;
    const bool alive = member.state == MembershipTable::State::kAlive;
    absl::Duration at_hand = progress.pass_age;
    // A process that hangs sends no heartbeat either.
    if (alive && at_hand > absl::ZeroDuration()) {
      at_hand += now - member.last_heartbeat;
    }
    tuner.Hear({member.task.index, member.incarnation, alive, progress.passes,
                progress.pass_times, at_hand});
  }
}

}  // namespace lockstep::chief
