#ifndef LOCKSTEP_SERVER_SYNC_SERVICE_H_
#define LOCKSTEP_SERVER_SYNC_SERVICE_H_

#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "lockstep/v1/sync.grpc.pb.h"
#include "server/pending_calls_service.h"
#include "server/shard_host.h"

namespace lockstep {

// SyncService puts the gate of ps task 0 on the wire.
//
// Threads: safe to share; gRPC calls it from its own threads, and none waits.
// Borrows: the host and the clock, which must outlive the gRPC server.
class SyncService final : public v1::SyncService::CallbackService {
 public:
  SyncService(ShardHost& host, const Clock& clock)
      : host_(host), clock_(clock) {}

  grpc::ServerUnaryReactor* Announce(grpc::CallbackServerContext* context,
                                     const v1::AnnounceRequest* request,
                                     v1::AnnounceResponse* response) override;
  grpc::ServerUnaryReactor* TakeToken(grpc::CallbackServerContext* context,
                                      const v1::TakeTokenRequest* request,
                                      v1::TakeTokenResponse* response) override;

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
  absl::Status HandleAnnounce(const v1::AnnounceRequest& request,
                              v1::AnnounceResponse& response);
  absl::Status HandleTakeToken(const v1::TakeTokenRequest& request,
                               uint64_t ticket);

  ShardHost& host_;
  const Clock& clock_;
  PendingCalls<v1::TakeTokenResponse> waits_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_SERVICE_H_
