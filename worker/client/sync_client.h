#ifndef LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_
#define LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/sync.pb.h"
#include "worker/client/repeated_calls.h"
#include "worker/client/rpc/server_channel.h"
#include "worker/loop/step_client.h"

namespace lockstep::worker {

// SyncClient calls the sync service of ps task 0 for one worker: announcements
// and tokens. Private to worker/client.
//
// Threads: one thread calls; Cancel() may come from any other.
// Borrows: the channel, until the calls that it has in flight have ended.
class SyncClient {
 public:
  SyncClient(ServerChannel& channel, const Sender& self)
      : channel_(channel),
        self_(self),
        calls_(channel, /*server=*/0, cancelled_) {}

  // As StepClient has them. They wait for the answer through any number of
  // retries.
  absl::StatusOr<Announcement> Announce(const PassId& pass);
  absl::StatusOr<Token> TakeToken(const PassId& pass, int64_t attempt);

  // Sends the call for a token early, so that it travels together with a push.
  // TakeToken() with the same arguments waits for its answer.
  void SendTakeToken(const PassId& pass, int64_t attempt);

  // Makes StepIsOver() follow the step of `pass`, until the next Watch() or
  // TakeToken().
  void Watch(const PassId& pass);
  // True if the step that was watched last is over.
  bool StepIsOver() const;

  // Ends the current call and all later ones with kCancelled. The owner of the
  // channel must cancel the calls in flight.
  void Cancel() { cancelled_ = true; }

 private:
  // The call for the token after a pass, sent before the pass's gradient.
  struct EarlyWait {
    PassId pass;
    int64_t attempt = 0;
    std::shared_ptr<RepeatedCalls::Call> call;
  };
  // Shared with the call in flight, whose callback may run after this object
  // ended.
  struct StepWatch {
    StepWatch(ServerChannel& to, grpc::ByteBuffer what)
        : channel(to), request(std::move(what)) {}

    ServerChannel& channel;
    const grpc::ByteBuffer request;
    std::atomic<bool> ended = false;
    std::atomic<bool> step_is_over = false;
  };

  static void AskAboutStep(const std::shared_ptr<StepWatch>& watch);
  void EndWatch();

  v1::TakeTokenRequest TokenRequest(const PassId& pass, int64_t attempt) const;

  ServerChannel& channel_;
  const Sender self_;
  std::atomic<bool> cancelled_ = false;
  RepeatedCalls calls_;
  std::optional<EarlyWait> early_wait_;
  std::shared_ptr<StepWatch> watch_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_SYNC_CLIENT_H_
