#ifndef LOCKSTEP_COMMON_BASE_FAULT_POINTS_H_
#define LOCKSTEP_COMMON_BASE_FAULT_POINTS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Places in the protocol where a test can end a process or hold it up: two for
// each message of a step, of a recovery, of a membership, of a checkpoint and
// of the end, in the process that sends it and in the one that serves it. A
// sender's are just before the message goes ("send") and once its answer is
// there ("answered"); a server's are before it looks at the message
// ("received") and when all is done but the answer has not gone ("answering").
// What changes a file has two as well ("before", "after"): a step record, the
// name of a checkpoint, the removal of a state file.
//
// They are in every build, and cost a comparison each.
enum class FaultPoint : int {
  kWorkerTokenSend,
  kWorkerTokenAnswered,
  kWorkerWatchSend,
  kWorkerWatchAnswered,
  kWorkerAnnounceSend,
  kWorkerAnnounceAnswered,
  kWorkerPullSend,
  kWorkerPullAnswered,
  kWorkerPushSend,
  kWorkerPushAnswered,
  kWorkerShareSend,
  kWorkerShareAnswered,
  kPsTokenReceived,
  kPsTokenAnswering,
  kPsAnnounceReceived,
  kPsAnnounceAnswering,
  kPsPullReceived,
  kPsPullAnswering,
  kPsPushReceived,
  kPsPushAnswering,
  kPsShareReceived,
  kPsShareAnswering,
  kPsTakeReceived,
  kPsTakeAnswering,
  kPsCommitReceived,
  kPsCommitHalfDone,
  kPsCommitAnswering,
  kPsExpireReceived,
  kPsExpireAnswering,
  kPsReplaceReceived,
  kPsReplaceAnswering,
  kChiefTakeSend,
  kChiefTakeAnswered,
  kChiefCommitSend,
  kChiefCommitAnswered,
  kChiefExpireSend,
  kChiefExpireAnswered,
  kChiefReplaceSend,
  kChiefReplaceAnswered,
  kMemberRegisterSend,
  kMemberRegisterAnswered,
  kMemberHeartbeatSend,
  kMemberHeartbeatAnswered,
  kMemberLeaveSend,
  kMemberLeaveAnswered,
  kWorkerDescribeSend,
  kWorkerDescribeAnswered,
  kWorkerPlanSend,
  kWorkerPlanAnswered,
  kChiefRegisterReceived,
  kChiefRegisterAnswering,
  kChiefHeartbeatReceived,
  kChiefHeartbeatAnswering,
  kChiefLeaveReceived,
  kChiefLeaveAnswering,
  kChiefDescribeReceived,
  kChiefDescribeAnswering,
  kChiefPlanReceived,
  kChiefPlanAnswering,
  kPsEpochReceived,
  kPsEpochAnswering,
  kPsCreateReceived,
  kPsCreateAnswering,
  kPsWriteReceived,
  kPsWriteAnswering,
  kPsActivateReceived,
  kPsActivateAnswering,
  kPsSnapshotReceived,
  kPsSnapshotAnswering,
  kPsReadReceived,
  kPsReadAnswering,
  kPsReleaseReceived,
  kPsReleaseAnswering,
  kPsCloseReceived,
  kPsCloseAnswering,
  kPsRecordBefore,
  kPsRecordAfter,
  kPsRemoveBefore,
  kPsRemoveAfter,
  kChiefEpochSend,
  kChiefEpochAnswered,
  kChiefCreateSend,
  kChiefCreateAnswered,
  kChiefWriteSend,
  kChiefWriteAnswered,
  kChiefActivateSend,
  kChiefActivateAnswered,
  kChiefSnapshotSend,
  kChiefSnapshotAnswered,
  kChiefReadSend,
  kChiefReadAnswered,
  kChiefReleaseSend,
  kChiefReleaseAnswered,
  kChiefCloseSend,
  kChiefCloseAnswered,
  kChiefRenameBefore,
  kChiefRenameAfter,
};

struct FaultPointName {
  FaultPoint point;
  absl::string_view name;  // begins with the process: "worker.", "ps.",
                           // "chief."; "member." is any that registers
};

// All of them, by number.
inline constexpr std::array kFaultPoints = {
    FaultPointName{FaultPoint::kWorkerTokenSend, "worker.token.send"},
    FaultPointName{FaultPoint::kWorkerTokenAnswered, "worker.token.answered"},
    FaultPointName{FaultPoint::kWorkerWatchSend, "worker.watch.send"},
    FaultPointName{FaultPoint::kWorkerWatchAnswered, "worker.watch.answered"},
    FaultPointName{FaultPoint::kWorkerAnnounceSend, "worker.announce.send"},
    FaultPointName{FaultPoint::kWorkerAnnounceAnswered,
                   "worker.announce.answered"},
    FaultPointName{FaultPoint::kWorkerPullSend, "worker.pull.send"},
    FaultPointName{FaultPoint::kWorkerPullAnswered, "worker.pull.answered"},
    FaultPointName{FaultPoint::kWorkerPushSend, "worker.push.send"},
    FaultPointName{FaultPoint::kWorkerPushAnswered, "worker.push.answered"},
    FaultPointName{FaultPoint::kWorkerShareSend, "worker.share.send"},
    FaultPointName{FaultPoint::kWorkerShareAnswered, "worker.share.answered"},
    FaultPointName{FaultPoint::kPsTokenReceived, "ps.token.received"},
    FaultPointName{FaultPoint::kPsTokenAnswering, "ps.token.answering"},
    FaultPointName{FaultPoint::kPsAnnounceReceived, "ps.announce.received"},
    FaultPointName{FaultPoint::kPsAnnounceAnswering, "ps.announce.answering"},
    FaultPointName{FaultPoint::kPsPullReceived, "ps.pull.received"},
    FaultPointName{FaultPoint::kPsPullAnswering, "ps.pull.answering"},
    FaultPointName{FaultPoint::kPsPushReceived, "ps.push.received"},
    FaultPointName{FaultPoint::kPsPushAnswering, "ps.push.answering"},
    FaultPointName{FaultPoint::kPsShareReceived, "ps.share.received"},
    FaultPointName{FaultPoint::kPsShareAnswering, "ps.share.answering"},
    FaultPointName{FaultPoint::kPsTakeReceived, "ps.take.received"},
    FaultPointName{FaultPoint::kPsTakeAnswering, "ps.take.answering"},
    FaultPointName{FaultPoint::kPsCommitReceived, "ps.commit.received"},
    // ps task 0: the gate has committed, the values have not.
    FaultPointName{FaultPoint::kPsCommitHalfDone, "ps.commit.half_done"},
    FaultPointName{FaultPoint::kPsCommitAnswering, "ps.commit.answering"},
    FaultPointName{FaultPoint::kPsExpireReceived, "ps.expire.received"},
    FaultPointName{FaultPoint::kPsExpireAnswering, "ps.expire.answering"},
    FaultPointName{FaultPoint::kPsReplaceReceived, "ps.replace.received"},
    FaultPointName{FaultPoint::kPsReplaceAnswering, "ps.replace.answering"},
    FaultPointName{FaultPoint::kChiefTakeSend, "chief.take.send"},
    FaultPointName{FaultPoint::kChiefTakeAnswered, "chief.take.answered"},
    FaultPointName{FaultPoint::kChiefCommitSend, "chief.commit.send"},
    FaultPointName{FaultPoint::kChiefCommitAnswered, "chief.commit.answered"},
    FaultPointName{FaultPoint::kChiefExpireSend, "chief.expire.send"},
    FaultPointName{FaultPoint::kChiefExpireAnswered, "chief.expire.answered"},
    FaultPointName{FaultPoint::kChiefReplaceSend, "chief.replace.send"},
    FaultPointName{FaultPoint::kChiefReplaceAnswered, "chief.replace.answered"},
    FaultPointName{FaultPoint::kMemberRegisterSend, "member.register.send"},
    FaultPointName{FaultPoint::kMemberRegisterAnswered,
                   "member.register.answered"},
    FaultPointName{FaultPoint::kMemberHeartbeatSend, "member.heartbeat.send"},
    FaultPointName{FaultPoint::kMemberHeartbeatAnswered,
                   "member.heartbeat.answered"},
    FaultPointName{FaultPoint::kMemberLeaveSend, "member.leave.send"},
    FaultPointName{FaultPoint::kMemberLeaveAnswered, "member.leave.answered"},
    FaultPointName{FaultPoint::kWorkerDescribeSend, "worker.describe.send"},
    FaultPointName{FaultPoint::kWorkerDescribeAnswered,
                   "worker.describe.answered"},
    FaultPointName{FaultPoint::kWorkerPlanSend, "worker.plan.send"},
    FaultPointName{FaultPoint::kWorkerPlanAnswered, "worker.plan.answered"},
    FaultPointName{FaultPoint::kChiefRegisterReceived,
                   "chief.register.received"},
    FaultPointName{FaultPoint::kChiefRegisterAnswering,
                   "chief.register.answering"},
    FaultPointName{FaultPoint::kChiefHeartbeatReceived,
                   "chief.heartbeat.received"},
    FaultPointName{FaultPoint::kChiefHeartbeatAnswering,
                   "chief.heartbeat.answering"},
    FaultPointName{FaultPoint::kChiefLeaveReceived, "chief.leave.received"},
    FaultPointName{FaultPoint::kChiefLeaveAnswering, "chief.leave.answering"},
    FaultPointName{FaultPoint::kChiefDescribeReceived,
                   "chief.describe.received"},
    FaultPointName{FaultPoint::kChiefDescribeAnswering,
                   "chief.describe.answering"},
    FaultPointName{FaultPoint::kChiefPlanReceived, "chief.plan.received"},
    FaultPointName{FaultPoint::kChiefPlanAnswering, "chief.plan.answering"},
    FaultPointName{FaultPoint::kPsEpochReceived, "ps.epoch.received"},
    FaultPointName{FaultPoint::kPsEpochAnswering, "ps.epoch.answering"},
    FaultPointName{FaultPoint::kPsCreateReceived, "ps.create.received"},
    FaultPointName{FaultPoint::kPsCreateAnswering, "ps.create.answering"},
    FaultPointName{FaultPoint::kPsWriteReceived, "ps.write.received"},
    FaultPointName{FaultPoint::kPsWriteAnswering, "ps.write.answering"},
    FaultPointName{FaultPoint::kPsActivateReceived, "ps.activate.received"},
    FaultPointName{FaultPoint::kPsActivateAnswering, "ps.activate.answering"},
    FaultPointName{FaultPoint::kPsSnapshotReceived, "ps.snapshot.received"},
    FaultPointName{FaultPoint::kPsSnapshotAnswering, "ps.snapshot.answering"},
    FaultPointName{FaultPoint::kPsReadReceived, "ps.read.received"},
    FaultPointName{FaultPoint::kPsReadAnswering, "ps.read.answering"},
    FaultPointName{FaultPoint::kPsReleaseReceived, "ps.release.received"},
    FaultPointName{FaultPoint::kPsReleaseAnswering, "ps.release.answering"},
    FaultPointName{FaultPoint::kPsCloseReceived, "ps.close.received"},
    FaultPointName{FaultPoint::kPsCloseAnswering, "ps.close.answering"},
    FaultPointName{FaultPoint::kPsRecordBefore, "ps.record.before"},
    FaultPointName{FaultPoint::kPsRecordAfter, "ps.record.after"},
    FaultPointName{FaultPoint::kPsRemoveBefore, "ps.remove.before"},
    FaultPointName{FaultPoint::kPsRemoveAfter, "ps.remove.after"},
    FaultPointName{FaultPoint::kChiefEpochSend, "chief.epoch.send"},
    FaultPointName{FaultPoint::kChiefEpochAnswered, "chief.epoch.answered"},
    FaultPointName{FaultPoint::kChiefCreateSend, "chief.create.send"},
    FaultPointName{FaultPoint::kChiefCreateAnswered, "chief.create.answered"},
    FaultPointName{FaultPoint::kChiefWriteSend, "chief.write.send"},
    FaultPointName{FaultPoint::kChiefWriteAnswered, "chief.write.answered"},
    FaultPointName{FaultPoint::kChiefActivateSend, "chief.activate.send"},
    FaultPointName{FaultPoint::kChiefActivateAnswered,
                   "chief.activate.answered"},
    FaultPointName{FaultPoint::kChiefSnapshotSend, "chief.snapshot.send"},
    FaultPointName{FaultPoint::kChiefSnapshotAnswered,
                   "chief.snapshot.answered"},
    FaultPointName{FaultPoint::kChiefReadSend, "chief.read.send"},
    FaultPointName{FaultPoint::kChiefReadAnswered, "chief.read.answered"},
    FaultPointName{FaultPoint::kChiefReleaseSend, "chief.release.send"},
    FaultPointName{FaultPoint::kChiefReleaseAnswered, "chief.release.answered"},
    FaultPointName{FaultPoint::kChiefCloseSend, "chief.close.send"},
    FaultPointName{FaultPoint::kChiefCloseAnswered, "chief.close.answered"},
    FaultPointName{FaultPoint::kChiefRenameBefore, "chief.rename.before"},
    FaultPointName{FaultPoint::kChiefRenameAfter, "chief.rename.after"},
};

// What happens, at which point.
struct Fault {
  enum class Action {
    kKill,   // the process ends at once, as by SIGKILL
    kStall,  // every thread that gets there from then on stays there
  };
  FaultPoint point{};
  int64_t nth = 1;  // from the nth time on, > 0
  Action action = Action::kKill;
};

// Reads "point:nth:action", as "worker.push.send:3:kill".
//
//   kInvalidArgument  says what is wrong with which of the three
absl::StatusOr<Fault> ParseFault(absl::string_view text);

// Arms one point of this process. Call it before there are other threads.
void ArmFault(const Fault& fault);

// Arms what the environment variable LOCKSTEP_FAULT asks for, if it is set.
//
//   kInvalidArgument  as ParseFault()
absl::Status ArmFaultFromEnvironment();

namespace fault_points_internal {
inline std::atomic<int> armed = -1;  // a FaultPoint
void Reached();
}  // namespace fault_points_internal

// To be called at the point.
//
// Threads: any; no lock may be held that the process's heartbeats need.
inline void PassFaultPoint(FaultPoint point) {
  if (fault_points_internal::armed.load(std::memory_order_relaxed) ==
      static_cast<int>(point)) [[unlikely]] {
    fault_points_internal::Reached();
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_FAULT_POINTS_H_
