#ifndef LOCKSTEP_WORKER_CLIENT_REPEATED_CALLS_H_
#define LOCKSTEP_WORKER_CLIENT_REPEATED_CALLS_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message_lite.h"
#include "worker/client/rpc/server_channel.h"

namespace lockstep::worker {

// RepeatedCalls makes calls without tensors to one server, and repeats those
// that fail with kUnavailable or kDeadlineExceeded. Private to worker/client.
//
// Threads: one thread calls.
// Borrows: the channel, until calls in flight have ended, and `cancelled`.
class RepeatedCalls {
 public:
  // One call, on its way or answered.
  struct Call {
    std::atomic<bool> done = false;
    absl::Status status;  // this and `answer` may be read once `done` is true
    grpc::ByteBuffer answer;
  };

  // `server` is the index of the ps task; `cancelled` becomes true, in any
  // thread, before the channel is cancelled.
  RepeatedCalls(ServerChannel& channel, int server,
                const std::atomic<bool>& cancelled)
      : channel_(channel), server_(server), cancelled_(cancelled) {}

  // Starts a call, and does not repeat it. `method` as in
  // ServerChannel::Call().
  std::shared_ptr<Call> Start(const std::string& method,
                              const grpc::ByteBuffer& request);

  // Repeats a call until the server answers it. `first`, if given, must be a
  // call for the same request that Start() returned; it counts as the first
  // attempt.
  //
  //   kCancelled  `cancelled` became true
  //   others      the error of the server, but never kUnavailable or
  //               kDeadlineExceeded
  absl::Status CallUntilAnswered(const std::string& method,
                                 const google::protobuf::MessageLite& request,
                                 google::protobuf::MessageLite& response,
                                 std::shared_ptr<Call> first = nullptr);

 private:
  ServerChannel& channel_;
  const int server_;
  const std::atomic<bool>& cancelled_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_REPEATED_CALLS_H_
