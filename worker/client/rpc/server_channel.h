#ifndef LOCKSTEP_WORKER_CLIENT_RPC_SERVER_CHANNEL_H_
#define LOCKSTEP_WORKER_CLIENT_RPC_SERVER_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "worker/client/rpc/call_poller.h"
#include "worker/client/rpc/call_stream.h"

namespace lockstep::worker {

// ServerChannel sends raw messages to one server, and can end all calls in
// flight at once. Large calls are RPCs of their own, spread over the
// connections; small calls share an open stream.
//
// Threads: safe to share; callbacks run in threads that serve the poller, never
//          inside Call().
// Borrows: the poller.
class ServerChannel {
 public:
  using Callback = std::function<void(absl::Status, grpc::ByteBuffer response)>;

  ServerChannel(CallPoller& poller, const std::string& address,
                int connections);
  // Waits until every callback has run.
  ~ServerChannel();

  CallPoller& poller() { return poller_; }

  // A small call has at most kLargestSmall bytes in its request and its
  // response. Its method must be one that servers accept on streams.
  enum class Size { kSmall, kLarge };
  static constexpr size_t kLargestSmall = size_t{64} << 10;  // bytes
  static Size SizeOf(size_t bytes) {
    return bytes <= kLargestSmall ? Size::kSmall : Size::kLarge;
  }
  // `method` is a full name, such as "/lockstep.v1.ParameterService/Push".
  // Memory that the request refers to must not change or be freed before the
  // callback has run. `deadline` is counted from now. The callback gets the
  // status of the RPC; after Cancel() that is kCancelled.
  void Call(Size size, const std::string& method,
            const grpc::ByteBuffer& request, absl::Duration deadline,
            Callback callback) ABSL_LOCKS_EXCLUDED(mutex_);

  // Small calls made while a Together is in scope travel in one message, or in
  // a few if there are more than a message may have.
  class Together {
   public:
    explicit Together(ServerChannel& channel) : stream_(channel.Stream()) {
      if (stream_ != nullptr) stream_->Hold();
    }
    ~Together() {
      if (stream_ != nullptr) stream_->Release(waits_);
    }
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

    // Must be called only if the caller makes no further small call before one
    // of these is answered: the server may stop reading until then.
    void Wait() { waits_ = true; }

   private:
    const std::shared_ptr<CallStreamClient> stream_;
    bool waits_ = false;
  };

  // Makes calls in flight and all later ones end with kCancelled.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct InFlight;

  void CallAlone(const std::string& method, const grpc::ByteBuffer& request,
                 absl::Duration deadline, Callback callback)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Done(InFlight* call) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsCancelled() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the open stream, opened if necessary; null if the server does not
  // serve streams, or after Cancel().
  std::shared_ptr<CallStreamClient> Stream() ABSL_LOCKS_EXCLUDED(mutex_);
  void StreamEnded(CallStreamClient* stream, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The loop of a thread that breaks streams with an overdue call.
  void WatchStreams() ABSL_LOCKS_EXCLUDED(mutex_);

  CallPoller& poller_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::unique_ptr<v1::CallStreamService::Stub> stream_stub_;

  Mutex mutex_;
  CondVar idle_;
  size_t next_stub_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<InFlight*, std::unique_ptr<InFlight>> in_flight_
      ABSL_GUARDED_BY(mutex_);
  bool has_streams_ ABSL_GUARDED_BY(mutex_) = true;  // the server serves them
  // The last stream is in use if `stream_open_`; those before it have broken.
  // (Broken ones stay until gRPC has ended them.)
  std::vector<std::shared_ptr<CallStreamClient>> streams_
      ABSL_GUARDED_BY(mutex_);
  bool stream_open_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watch_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_RPC_SERVER_CHANNEL_H_
