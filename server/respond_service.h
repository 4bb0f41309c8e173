#ifndef LOCKSTEP_SERVER_RESPOND_SERVICE_H_
#define LOCKSTEP_SERVER_RESPOND_SERVICE_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/grpc_status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace lockstep {

// Ends a unary call at once.
inline grpc::ServerUnaryReactor* FinishUnary(
    grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// Ends one call, once, in any thread: with a response message, or with why
// there is none.
using Respond =
    std::function<void(const absl::Status& status, grpc::ByteBuffer response)>;

// Serves one method, however its calls travel: it ends each of them once, now
// or later, and waits for nothing.
using CallHandler =
    std::function<void(const grpc::ByteBuffer& request, Respond respond)>;

// A call that travels as a unary RPC of its own.
inline grpc::ServerUnaryReactor* ServeUnary(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response, const CallHandler& handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  handler(*request, [reactor, response](const absl::Status& status,
                                        grpc::ByteBuffer answer) {
    *response = std::move(answer);
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RESPOND_SERVICE_H_
