#include "chief/backups/member_news.h"

namespace lockstep::chief {
namespace {

// A process that hangs sends no heartbeats either: after this many missed ones
// its pass is assumed to be that of its last heartbeat.
constexpr double kMissedHeartbeats = 2;

}  // namespace

void HearMembers(const std::vector<MembershipTable::Member>& members,
                 absl::Duration heartbeat_interval, absl::Time now,
                 BackupTuner& tuner) {
  for (const MembershipTable::Member& member : members) {
    if (member.task.type != TaskType::kWorker) continue;
    const Progress& progress = member.progress;
    const bool alive = member.state == MembershipTable::State::kAlive;
    absl::Duration at_hand = progress.pass_age;
    // Between two heartbeats many passes may have ended.
    const absl::Duration silence = now - member.last_heartbeat;
    if (alive && at_hand > absl::ZeroDuration() &&
        silence > kMissedHeartbeats * heartbeat_interval) {
      at_hand += silence;
    }
    tuner.Hear({member.task.index, member.incarnation, alive, progress.passes,
                progress.pass_times, at_hand, member.sent_back});
  }
}

void HearMembers(const std::vector<MembershipTable::Member>& members,
                 PushTuner& tuner) {
  for (const MembershipTable::Member& member : members) {
    if (member.task.type != TaskType::kWorker) continue;
    const Progress& progress = member.progress;
    tuner.Hear(member.task.index, member.incarnation,
               {progress.micro_batches, progress.micro_batches_time,
                progress.pushes, progress.pushes_time});
  }
}

}  // namespace lockstep::chief
