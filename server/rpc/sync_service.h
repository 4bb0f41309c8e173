#ifndef LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "lockstep/v1/sync.grpc.pb.h"
#include "server/calls/pending_calls.h"
#include "server/calls/respond.h"
#include "server/shard/shard_host.h"

namespace lockstep {

// SyncService puts the gate of ps task 0 on the wire.
//
// Threads: safe to share; gRPC calls it from its own threads, and none waits.
// Borrows: the host and the clock, which must outlive the gRPC server.
class SyncService final
    : public v1::SyncService::WithRawCallbackMethod_Announce<
          v1::SyncService::WithRawCallbackMethod_TakeToken<
              v1::SyncService::Service>> {
 public:
  SyncService(ShardHost& host, const Clock& clock)
      : host_(host), clock_(clock) {}

  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* TakeToken(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;

  // The same, however the calls travel.
  void ServeAnnounce(const grpc::ByteBuffer& request, const Respond& respond);
  void ServeTakeToken(const grpc::ByteBuffer& request, Respond respond);

  // Answers waits that have ended.
  void Finish(const std::vector<StepGate::Answer>& answers);

  // Answers waits that are older than a few seconds with TOKEN_WAIT, so that
  // no call outlives its deadline. To be called now and then.
  void AnswerOld(absl::Time now);

  // Ends all waits, because this process ends.
  void CancelAll(const absl::Status& why);

 private:
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const v1::Identity& identity,
                                               int slot);
  absl::StatusOr<v1::AnnounceResponse> HandleAnnounce(
      const v1::AnnounceRequest& request);
  absl::Status HandleTakeToken(const v1::TakeTokenRequest& request,
                               uint64_t ticket);

  ShardHost& host_;
  const Clock& clock_;
  PendingCalls<Respond> waits_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_SYNC_SERVICE_H_
