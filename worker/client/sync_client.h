#ifndef LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_
#define LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/sync.pb.h"
#include "worker/client/exchange/early_call.h"
#include "worker/client/exchange/push_id.h"
#include "worker/client/repeated_calls.h"
#include "worker/client/rpc/server_channel.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// SyncClient calls the sync service of ps task 0 for one worker: announcements
// and tokens. Private to worker/client.
//
// Threads: one thread calls; Cancel() may come from any other.
// Borrows: the channel, until its calls in flight have ended. They may outlive
//          this object.
class SyncClient {
 public:
  SyncClient(ServerChannel& channel, const Sender& self)
      : channel_(channel),
        self_(self),
        calls_(channel, /*server=*/0, cancelled_) {}

  // As the methods of StepClient.
  absl::StatusOr<Announcement> Announce(const PassId& pass);
  absl::StatusOr<Token> TakeToken(const PushId& after);

  // Sends the call for a token without waiting, so that it travels together
  // with a push. TakeToken() with the same argument then waits for its answer.
  void SendTakeToken(const PushId& after);
  // True if that call was answered that training is over: no step averages the
  // gradients of a push that is not answered yet.
  bool TrainingIsOver(const PushId& after) const;

  // Makes StepIsOver() follow the step of `pass`, until the next Watch(),
  // SendTakeToken() or TakeToken().
  void Watch(const PassId& pass);
  // True if the step of the last Watch() is over. A lost call may leave it
  // false.
  bool StepIsOver() const;

  // Makes the current call and all later ones return kCancelled. The owner must
  // also cancel the channel, which ends the calls in flight.
  void Cancel() { cancelled_ = true; }

 private:
  // Shared with the call in flight, whose callback may run after this object
  // was destroyed.
  struct StepWatch {
    StepWatch(ServerChannel& to, grpc::ByteBuffer what)
        : channel(to), request(std::move(what)) {}

    ServerChannel& channel;
    const grpc::ByteBuffer request;
    std::atomic<bool> ended = false;
    std::atomic<bool> step_is_over = false;
  };

  // Starts a call that returns when the step of the watch is over; repeats it
  // when the server's wait ends without that.
  static void AskAboutStep(const std::shared_ptr<StepWatch>& watch);
  void EndWatch();

  v1::TakeTokenRequest TokenRequest(const PushId& after) const;

  ServerChannel& channel_;
  const Sender self_;
  std::atomic<bool> cancelled_ = false;
  RepeatedCalls calls_;
  EarlyCall<RepeatedCalls::Call> early_call_;
  std::shared_ptr<StepWatch> watch_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_
