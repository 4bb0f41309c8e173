#ifndef LOCKSTEP_SERVER_RPC_REPLIES_H_
#define LOCKSTEP_SERVER_RPC_REPLIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "lockstep/v1/shard_control.pb.h"
#include "server/calls/lent_calls.h"
#include "server/calls/pending_calls.h"
#include "server/calls/respond.h"
#include "server/rpc/push_metrics.h"
#include "server/shard/chief_commands.h"
#include "server/shard/lost_callers.h"
#include "server/shard/lost_news.h"
#include "server/shard/shard_host.h"
#include "server/step/postponed_calls.h"

namespace lockstep::server {

// Replies is the outbox of a server. It owns every call that waits for other
// calls: pushes, waits for a token, the chief's waits for a step, and calls
// that wait for the chief's commit. A service must file a call before it hands
// the request to the shard, and pass the answers that the shard returns, to
// this call or to others, to Send().
//
//   service -> File...() -> shard -> engine -> ShardAnswers
//                 |                               |
//                 |                     ChiefCommands::Settle()
//                 |                               |
//                 `------------ Send() <----------'
//
// A call ends exactly once: by Send(), Fail...(), AnswerOld(), EndAll() or
// LetGo().
//
// Threads: safe to share. No call of this class blocks; callers must hold no
//          lock.
// Borrows: the host and the clock, which must outlive it.
class Replies {
 public:
  // A push until it is answered.
  struct PendingPush {
    Respond respond;
    bool shared = false;  // the answer names places in shared memory
    int first_part = 0;
    int num_parts = 0;
    BreakOff break_off = nullptr;  // null: answers are copied
  };
  // The chief's wait for a step.
  struct PendingTake {
    grpc::ServerUnaryReactor* reactor = nullptr;
    v1::TakeAndApplyResponse* response = nullptr;
  };

  Replies(ShardHost& host, const Clock& clock) : host_(host), clock_(clock) {}
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;

  // Each returns the ticket under which the engine or the gate will answer.
  uint64_t FilePush(PendingPush call);
  uint64_t FileTokenWait(Respond call);
  uint64_t FileTake(PendingTake call);

  // Records the call of a worker, and the end of a stream of calls: as
  // LostCallers.
  void Called(uint64_t stream, int worker, uint64_t incarnation) {
    lost_.Called(stream, worker, incarnation);
  }
  void StreamEnded(uint64_t stream) { lost_.Ended(stream, clock_.Now()); }

  // As PostponedCalls::Add().
  bool Postpone(Shard& shard, int64_t step, PostponedCalls::GoOn go_on) {
    return postponed_.Add(shard.engine(), step, clock_.Now(), std::move(go_on));
  }

  // Ends a call that the shard has refused. No effect on a call that has ended.
  void FailPush(uint64_t ticket, const absl::Status& why);
  void FailTokenWait(uint64_t ticket, const absl::Status& why);
  void FailTake(uint64_t ticket, const absl::Status& why);

  // `changed` is called when ShardAnswers::means_changed is set, and when a
  // shard was discarded. Must be called before calls are served.
  void set_on_means_changed(std::function<void()> changed) {
    on_means_changed_ = std::move(changed);
  }

  // Ends the calls that `ready` answers: pushes first, then waits for tokens,
  // then the chief's.
  void Send(Shard& shard, ChiefCommands::Ready ready);
  void SendTokens(const std::vector<Gate::Answer>& answers);

  // Registers an answer that lends parts from `first_part` on, so that
  // TakeBack() can break its call off. The answer must hold the result for as
  // long as it refers to the memory of the parts. Null if `break_off` is null.
  std::shared_ptr<const void> Lend(int first_part, int num_parts,
                                   const BreakOff& break_off);

  // Breaks off calls whose answers have not been read for the job's lease and
  // lend memory that an update waits for. Must be called periodically.
  void TakeBack(absl::Time now);

  // Answers calls before they reach their deadlines: token waits with
  // TOKEN_WAIT, the chief's with the gradients that the step lacks, and earlier
  // if the connection of a worker has broken that may hold up the step. Must be
  // called periodically, by one thread.
  void AnswerOld(absl::Time now);

  // Ends all calls: the process ends.
  void EndAll(const absl::Status& why);

  // Ends all calls, and breaks off those whose answers lend memory: the shard
  // was discarded, and its memory must become free.
  void LetGo(const absl::Status& why);

  const PushMetrics& counts() const { return counts_; }

 private:
  void SendPushes(std::vector<PushAnswer> answers);
  void SendTakes(Shard& shard, const std::vector<TakeAnswer>& answers,
                 int64_t committed_step);
  void AnswerOldTokenWaits(absl::Time now);
  void AnswerOldTakes(absl::Time now);
  // As LostNews::TakeNews(), about the step at hand.
  bool HasNewsOfLost();

  ShardHost& host_;
  const Clock& clock_;
  std::function<void()> on_means_changed_ = [] {};
  PendingCalls<PendingPush> pushes_;
  PendingCalls<Respond> token_waits_;
  PendingCalls<PendingTake> takes_;
  PostponedCalls postponed_;
  PushMetrics counts_;
  LostCallers lost_;
  LostNews news_;  // used by AnswerOld() alone
  const std::shared_ptr<LentCalls> lent_ = LentCalls::Create();
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_REPLIES_H_
