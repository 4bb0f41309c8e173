#ifndef LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/log_budget.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "server/calls/peer_budget.h"
#include "server/calls/respond.h"
#include "server/rpc/replies.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

// ParameterService puts a shard's tensors on the wire. Push and Pull are
// handled as raw bytes: gradients stay in the slices in which gRPC received
// them, or in the shared memory where their worker computed them.
//
// Threads: safe to share; gRPC calls it from its own threads, and no call
//          blocks.
// Borrows: all constructor arguments, which must outlive the gRPC server.
class ParameterService final
    : public v1::ParameterService::WithRawCallbackMethod_Push<
          v1::ParameterService::WithRawCallbackMethod_Pull<
              v1::ParameterService::WithRawCallbackMethod_OpenSharedMemory<
                  v1::ParameterService::Service>>> {
 public:
  using Moved = std::function<void(size_t bytes)>;

  // The largest number of bytes of rows, which are copied, that a connection
  // may leave unread. One answer may be larger.
  static constexpr size_t kUnreadRows = size_t{64} << 20;

  // The largest number of bytes of tensors in an answer on a stream. A call
  // that asks for more is refused before it has any effect.
  static constexpr size_t kLargestStreamed =
      (size_t{4} << 20) - (size_t{64} << 10);

  // Pushes wait in `replies`. `commands` commits the steps that they complete.
  ParameterService(ShardHost& host, ChiefCommands& commands, Replies& replies)
      : host_(host), commands_(commands), replies_(replies) {}

  // `moved` is called with the number of bytes that a push or a pull moves, on
  // the wire or through shared memory. Must be set before serving.
  void set_moved(Moved moved) { moved_ = std::move(moved); }

  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* OpenSharedMemory(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;

  // The connection of a unary call. Empty for a call on a stream, which copies
  // its answers and bounds those that are unread itself.
  struct Connection {
    BreakOff break_off = nullptr;
    const grpc::CallbackServerContext* context = nullptr;
  };

  // Serve one call of a unary RPC or of a stream. `break_off` is null for a
  // call on a stream.
  void ServePush(const Caller& caller, const grpc::ByteBuffer& request,
                 Respond respond, BreakOff break_off = nullptr);
  void ServePull(const Caller& caller, const grpc::ByteBuffer& request,
                 const Respond& respond, const Connection& connection);
  void ServeOpen(const Caller& caller, const grpc::ByteBuffer& request,
                 const Respond& respond);

 private:
  absl::Status HandlePush(const Caller& caller, const v1::PushHeader& header,
                          const TensorPayload& payload, uint64_t ticket,
                          int64_t received, bool streamed);
  // Answers the pull, or postpones it until the chief commits its step.
  void AnswerPull(const Caller& caller, const v1::PullRequest& request,
                  const Respond& respond, const Connection& connection);
  absl::StatusOr<std::shared_ptr<Shard>> AdmitPull(
      const Caller& caller, const v1::PullRequest& request) const;
  absl::StatusOr<grpc::ByteBuffer> HandlePull(const v1::PullRequest& request,
                                              const Connection& connection,
                                              Shard& shard);
  absl::StatusOr<grpc::ByteBuffer> HandlePullRows(
      const v1::PullRequest& request,
      const grpc::CallbackServerContext* context, Shard& shard);
  absl::StatusOr<v1::OpenSharedMemoryResponse> HandleOpen(
      const Caller& caller, const v1::OpenSharedMemoryRequest& request);

  ShardHost& host_;
  ChiefCommands& commands_;
  Replies& replies_;
  Moved moved_ = [](size_t) {};
  PeerBudget answers_{kUnreadRows};
  LogBudget unshared_;  // of memory that could not be opened
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_
