#ifndef LOCKSTEP_SERVER_CALLS_RESPOND_H_
#define LOCKSTEP_SERVER_CALLS_RESPOND_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "common/metrics/durations.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/status.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace lockstep::server {

// Ends a unary call at once.
inline grpc::ServerUnaryReactor* FinishUnary(
    grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// Must be called once per call, in any thread: with kOk and the response
// message, or with an error.
using Respond =
    std::function<void(const absl::Status& status, grpc::ByteBuffer response)>;

// Returns a `respond` that also measures the time of its call from now on.
// `method` is that of RpcTimer.
inline Respond Timed(absl::string_view method, Respond respond) {
  return [timer = RpcTimer(RpcSide::kServer, method),
          respond = std::move(respond)](const absl::Status& status,
                                        grpc::ByteBuffer response) {
    timer.Done();
    respond(status, std::move(response));
  };
}

// Serves one method, for unary calls and calls on a stream: must call `respond`
// once, at once or later, and must not block.
using CallHandler = std::function<void(
    const Caller& caller, const grpc::ByteBuffer& request, Respond respond)>;

// Breaks a call off; may be called in any thread. No effect if the call is
// over.
using BreakOff = std::function<void(const absl::Status& why)>;

// UnaryCall is a unary call of gRPC that the server can cancel after its
// answer: gRPC ends a call only when its caller has read the answer.
//
// Threads: safe to share.
// Owns:    itself, until gRPC is done with the call.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(grpc_call* call) : handle_(std::make_shared<Handle>()) {
    MutexLock lock(handle_->mutex);
    handle_->call = call;
  }

  // The result may be called after the object is gone.
  BreakOff break_off() const {
    return [handle = handle_](const absl::Status& why) { handle->End(why); };
  }

  void OnDone() override {
    {
      MutexLock lock(handle_->mutex);
      handle_->call = nullptr;
    }
    delete this;
  }
  // OnDone() is short, so gRPC may call it in its own thread, as it does for a
  // DefaultReactor.
  bool InternalInlineable() override { return true; }

 private:
  struct Handle {
    void End(const absl::Status& why) {
      grpc_call* ended = nullptr;
      {
        MutexLock lock(mutex);
        if (call == nullptr) return;
        ended = call;
        grpc_call_ref(ended);
      }
      // With no lock held: OnDone() may run within it.
      const grpc::Status status = ToGrpcStatus(why);
      grpc_call_cancel_with_status(
          ended, static_cast<grpc_status_code>(status.error_code()),
          status.error_message().c_str(), nullptr);
      grpc_call_unref(ended);
    }

    Mutex mutex;
    grpc_call* call ABSL_GUARDED_BY(mutex) = nullptr;
  };

  const std::shared_ptr<Handle> handle_;
};

// Serves calls whose answers lend memory.
using LendingHandler =
    std::function<void(const Caller& caller, const grpc::ByteBuffer& request,
                       Respond respond, BreakOff break_off)>;

inline grpc::ServerUnaryReactor* ServeLending(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response, const LendingHandler& handler) {
  auto* call = new UnaryCall(context->c_call());
  handler(
      CallerOf(*context), *request,
      [call, response](const absl::Status& status, grpc::ByteBuffer answer) {
        *response = std::move(answer);
        call->Finish(ToGrpcStatus(status));
      },
      call->break_off());
  return call;
}

// Serves a call that is a unary RPC.
inline grpc::ServerUnaryReactor* ServeUnary(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response, const CallHandler& handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  handler(
      CallerOf(*context), *request,
      [reactor, response](const absl::Status& status, grpc::ByteBuffer answer) {
        *response = std::move(answer);
        reactor->Finish(ToGrpcStatus(status));
      });
  return reactor;
}

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_RESPOND_H_
