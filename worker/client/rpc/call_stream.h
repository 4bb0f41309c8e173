#ifndef LOCKSTEP_WORKER_CLIENT_RPC_CALL_STREAM_H_
#define LOCKSTEP_WORKER_CLIENT_RPC_CALL_STREAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "lockstep/v1/call_stream.grpc.pb.h"
#include "worker/client/rpc/call_poller.h"

namespace lockstep::worker {

// CallStreamClient is one stream to a server's CallStreamService, with the
// calls that wait for an answer on it. It cannot be opened again: when it
// breaks, for any reason, its calls fail and it accepts no more.
//
//   made -> Open() -> broken -> on_end; gRPC does not use the object any more
//
// Threads: safe to share; callbacks run in threads that serve the poller, never
//          inside Call().
class CallStreamClient final {
 public:
  using Callback = std::function<void(absl::Status, grpc::ByteBuffer response)>;
  // `status` is the reason why the stream broke; kUnimplemented: the server
  // does not serve streams; kResourceExhausted: no more on this connection.
  using OnEnd = std::function<void(const absl::Status& status)>;

  // Must be called once. `on_end` runs after the callbacks of all calls, and
  // may delete this object.
  void Open(v1::CallStreamService::Stub& stub, CallPoller& poller, OnEnd on_end)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes a call, whose request is copied. Returns false, and does nothing, if
  // the stream is broken. The callback runs once, with the answer or with
  //
  //   kDeadlineExceeded  a call of the stream had no answer by its deadline
  //   kUnavailable       the stream broke
  //   kCancelled         Cancel() was called
  bool Call(const std::string& method, const grpc::ByteBuffer& request,
            absl::Time deadline, Callback callback) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls made between Hold() and Release() are sent together, at most 1024 in
  // a message. `waits` must be true only if the caller makes no further call
  // before one of these is answered.
  void Hold() ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(bool waits) ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks the stream if a call has had no answer by its deadline.
  void CheckDeadlines(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks the stream.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Stream =
      grpc::ClientAsyncReaderWriter<v1::StreamedCalls, v1::StreamedAnswers>;

  // The tag of one kind of gRPC operation; at most one of a kind is under way.
  class Operation final : public CallPoller::Event {
   public:
    using Then = void (CallStreamClient::*)(bool ok);
    Operation(CallStreamClient* stream, Then then)
        : stream_(stream), then_(then) {}
    void Happened(bool ok) override;

   private:
    CallStreamClient* const stream_;
    const Then then_;
  };
  struct Waiting {
    absl::Time deadline;
    Callback callback;
  };

  void Read(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadOn(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Written(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Finished(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  // Fails the calls that wait, and calls on_end_.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  void Answered(v1::StreamedAnswer& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WhyBroken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  OnEnd on_end_;
  grpc::ClientContext context_;
  CallPoller* poller_ = nullptr;
  std::unique_ptr<Stream> stream_;
  grpc::Status status_;  // once the stream has finished
  v1::StreamedAnswers incoming_;
  Operation read_{this, &CallStreamClient::Read};
  Operation read_on_{this, &CallStreamClient::ReadOn};
  Operation write_{this, &CallStreamClient::Written};
  Operation finish_{this, &CallStreamClient::Finished};

  Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // operations
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool overdue_ ABSL_GUARDED_BY(mutex_) = false;
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::StreamedCalls calls_ ABSL_GUARDED_BY(mutex_);  // to be written
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_RPC_CALL_STREAM_H_
