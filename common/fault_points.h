#ifndef LOCKSTEP_COMMON_FAULT_POINTS_H_
#define LOCKSTEP_COMMON_FAULT_POINTS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Places in the protocol where a test can end a process or hold it up: two for
// each message of a step, in the process that sends it and in the one that
// serves it. A sender's are just before the message goes ("send") and once its
// answer is there ("answered"); a server's are before it looks at the message
// ("received") and when all is done but the answer has not gone ("answering").
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
};

struct FaultPointName {
  FaultPoint point;
  absl::string_view
      name;  // begins with the process: "worker.", "ps.", "chief."
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

#endif  // LOCKSTEP_COMMON_FAULT_POINTS_H_
