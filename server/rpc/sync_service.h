#ifndef LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "lockstep/v1/sync.grpc.pb.h"
#include "server/calls/respond.h"
#include "server/rpc/replies.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

// SyncService puts the gate of ps task 0 on the wire.
//
// Threads: safe to share; gRPC calls it from its own threads, and no call
//          blocks.
// Borrows: all constructor arguments, which must outlive the gRPC server.
class SyncService final
    : public v1::SyncService::WithRawCallbackMethod_Announce<
          v1::SyncService::WithRawCallbackMethod_TakeToken<
              v1::SyncService::Service>> {
 public:
  // Waits for tokens are filed in `replies`.
  SyncService(ShardHost& host, Replies& replies, const Clock& clock)
      : host_(host), replies_(replies), clock_(clock) {}

  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* TakeToken(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;

  // Serve a call of a unary RPC or of a stream.
  void ServeAnnounce(const Caller& caller, const grpc::ByteBuffer& request,
                     const Respond& respond);
  void ServeTakeToken(const Caller& caller, const grpc::ByteBuffer& request,
                      Respond respond);

 private:
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const Caller& caller,
                                               const v1::Identity& identity,
                                               int slot);
  absl::StatusOr<v1::AnnounceResponse> HandleAnnounce(
      const Caller& caller, const v1::AnnounceRequest& request);
  absl::Status HandleTakeToken(const Caller& caller,
                               const v1::TakeTokenRequest& request,
                               uint64_t ticket);

  ShardHost& host_;
  Replies& replies_;
  const Clock& clock_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_
