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
// that fail for a passing reason. Private to worker/client.
//
// Threads: one thread calls.
// Borrows: the channel, until calls in flight have ended, and the flag.
class RepeatedCalls {
 public:
  // One call, on its way or answered.
  struct Call {
    std::atomic<bool> done = false;
    absl::Status status;  // this and the answer once it is done
    grpc::ByteBuffer answer;
  };

  // `server` is the index of the ps task; `cancelled` becomes true, in any
  // thread, before the channel is cancelled.
  RepeatedCalls(ServerChannel& channel, int server,
                const std::atomic<bool>& cancelled)
      : channel_(channel), server_(server), cancelled_(cancelled) {}

  // `method` as ServerChannel::Call() has it.
  std::shared_ptr<Call> Start(const std::string& method,
                              const grpc::ByteBuffer& request);

  // Calls an RPC until it answers. `first`, if given, is a call for the same
  // request that Start() returned earlier.
  //
  //   kCancelled  the flag was set
  //   others      as the server failed it, kUnavailable and kDeadlineExceeded
  //               excepted
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
