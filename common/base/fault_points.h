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
// of the end, in the process that sends it and in the one that serves it. They
// are in every build, and cost a comparison each.
//
// The table has a row for each message and process: the row (WorkerToken,
// "worker.token") of SENT stands for kWorkerTokenSend, "worker.token.send", and
// kWorkerTokenAnswered, "worker.token.answered".
//
//   SENT    just before the message goes ("send"), and once its answer is there
//           ("answered")
//   SERVED  before the server looks at the message ("received"), and when all
//           is done but the answer has not gone ("answering")
//   FILED   around a change of a file ("before", "after"): a step record, the
//           name of a checkpoint, the removal of a state file
//   ONE     a single point; PsCommitHalfDone: on ps task 0 the gate has
//           committed, the values have not; PsNormHalfDone: one part is updated
//           with the norm of all mean gradients, others may not be
//
// A name begins with the process: "worker.", "ps.", "chief."; "member." is any
// that registers.
#define LOCKSTEP_FAULT_POINTS(SENT, SERVED, FILED, ONE) \
  SENT(WorkerToken, "worker.token")                     \
  SENT(WorkerWatch, "worker.watch")                     \
  SENT(WorkerAnnounce, "worker.announce")               \
  SENT(WorkerPull, "worker.pull")                       \
  SENT(WorkerPush, "worker.push")                       \
  SENT(WorkerShare, "worker.share")                     \
  SERVED(PsToken, "ps.token")                           \
  SERVED(PsAnnounce, "ps.announce")                     \
  SERVED(PsPull, "ps.pull")                             \
  SERVED(PsPush, "ps.push")                             \
  SERVED(PsShare, "ps.share")                           \
  SENT(PsFetch, "ps.fetch")                             \
  SERVED(PsMeans, "ps.means")                           \
  SERVED(PsTake, "ps.take")                             \
  SERVED(PsCommit, "ps.commit")                         \
  ONE(PsCommitHalfDone, "ps.commit.half_done")          \
  ONE(PsNormHalfDone, "ps.norm.half_done")              \
  SERVED(PsExpire, "ps.expire")                         \
  SERVED(PsReplace, "ps.replace")                       \
  SENT(ChiefTake, "chief.take")                         \
  SENT(ChiefCommit, "chief.commit")                     \
  SENT(ChiefExpire, "chief.expire")                     \
  SENT(ChiefReplace, "chief.replace")                   \
  SENT(MemberRegister, "member.register")               \
  SENT(MemberHeartbeat, "member.heartbeat")             \
  SENT(MemberLeave, "member.leave")                     \
  SENT(WorkerDescribe, "worker.describe")               \
  SENT(WorkerPlan, "worker.plan")                       \
  SENT(WorkerValues, "worker.values")                   \
  SERVED(ChiefRegister, "chief.register")               \
  SERVED(ChiefHeartbeat, "chief.heartbeat")             \
  SERVED(ChiefLeave, "chief.leave")                     \
  SERVED(ChiefDescribe, "chief.describe")               \
  SERVED(ChiefPlan, "chief.plan")                       \
  SERVED(ChiefValues, "chief.values")                   \
  SERVED(PsEpoch, "ps.epoch")                           \
  SERVED(PsCreate, "ps.create")                         \
  SERVED(PsWrite, "ps.write")                           \
  SERVED(PsActivate, "ps.activate")                     \
  SERVED(PsSnapshot, "ps.snapshot")                     \
  SERVED(PsRead, "ps.read")                             \
  SERVED(PsRelease, "ps.release")                       \
  SERVED(PsClose, "ps.close")                           \
  FILED(PsRecord, "ps.record")                          \
  FILED(PsRemove, "ps.remove")                          \
  SENT(ChiefEpoch, "chief.epoch")                       \
  SENT(ChiefCreate, "chief.create")                     \
  SENT(ChiefWrite, "chief.write")                       \
  SENT(ChiefActivate, "chief.activate")                 \
  SENT(ChiefSnapshot, "chief.snapshot")                 \
  SENT(ChiefRead, "chief.read")                         \
  SENT(ChiefRelease, "chief.release")                   \
  SENT(ChiefClose, "chief.close")                       \
  FILED(ChiefRename, "chief.rename")

// Uses the table: ONE(point, name) for each of the points, in order.
#define LOCKSTEP_SENT_(stem, name)          \
  LOCKSTEP_POINT_(stem##Send, name ".send") \
  LOCKSTEP_POINT_(stem##Answered, name ".answered")
#define LOCKSTEP_SERVED_(stem, name)                \
  LOCKSTEP_POINT_(stem##Received, name ".received") \
  LOCKSTEP_POINT_(stem##Answering, name ".answering")
#define LOCKSTEP_FILED_(stem, name)             \
  LOCKSTEP_POINT_(stem##Before, name ".before") \
  LOCKSTEP_POINT_(stem##After, name ".after")
#define LOCKSTEP_ALL_POINTS_                                               \
  LOCKSTEP_FAULT_POINTS(LOCKSTEP_SENT_, LOCKSTEP_SERVED_, LOCKSTEP_FILED_, \
                        LOCKSTEP_POINT_)

#define LOCKSTEP_POINT_(point, name) k##point,
enum class FaultPoint : int { LOCKSTEP_ALL_POINTS_ };
#undef LOCKSTEP_POINT_

struct FaultPointName {
  FaultPoint point;
  absl::string_view name;
};

// All fault points with their names, in the order of their numbers.
#define LOCKSTEP_POINT_(point, name) FaultPointName{FaultPoint::k##point, name},
inline constexpr std::array kFaultPoints = {LOCKSTEP_ALL_POINTS_};
#undef LOCKSTEP_POINT_

// An action and the point at which it occurs.
struct Fault {
  enum class Action {
    kKill,   // the process ends at once, as by SIGKILL
    kStall,  // every thread that passes the point from then on hangs
  };
  FaultPoint point{};
  int64_t nth = 1;  // first pass of the point that triggers it, > 0
  Action action = Action::kKill;
};

// Parses "point:nth:action", such as "worker.push.send:3:kill".
//
//   kInvalidArgument  says which of the three is wrong, and why
absl::StatusOr<Fault> ParseFault(absl::string_view text);

// Arms one point of this process. Must be called before other threads exist.
void ArmFault(const Fault& fault);

// Arms the fault in the environment variable LOCKSTEP_FAULT, if it is set.
//
//   kInvalidArgument  as ParseFault()
absl::Status ArmFaultFromEnvironment();

namespace fault_points_internal {
inline std::atomic<int> armed = -1;  // a FaultPoint
void Reached();
}  // namespace fault_points_internal

// Triggers the armed fault if it is at `point`.
//
// Threads: any. The caller must not hold a lock that the process's heartbeats
//          need, since kStall never returns.
inline void PassFaultPoint(FaultPoint point) {
  if (fault_points_internal::armed.load(std::memory_order_relaxed) ==
      static_cast<int>(point)) [[unlikely]] {
    fault_points_internal::Reached();
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_FAULT_POINTS_H_
