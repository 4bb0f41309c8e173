#ifndef LOCKSTEP_SERVER_RPC_SHARD_CONTROL_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_SHARD_CONTROL_SERVICE_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/rpc/status.h"
#include "lockstep/v1/shard_control.grpc.pb.h"
#include "server/calls/long_calls.h"
#include "server/calls/respond.h"
#include "server/rpc/replies.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"

namespace lockstep::server {

namespace shard_control_internal {
// Selects the RPCs that are handled as raw bytes, because they carry tensors;
// the others are handled as messages.
using S = v1::ShardControlService;
using Base = S::WithCallbackMethod_TakeEpoch<
    S::WithCallbackMethod_CreateShard<S::WithRawCallbackMethod_WriteParts<
        S::WithCallbackMethod_Activate<S::WithCallbackMethod_TakeAndApply<
            S::WithCallbackMethod_Commit<S::WithCallbackMethod_ExpireWorker<
                S::WithCallbackMethod_ReplaceMember<
                    S::WithCallbackMethod_BeginSnapshot<
                        S::WithRawCallbackMethod_ReadSnapshot<
                            S::WithCallbackMethod_EndSnapshot<
                                S::WithCallbackMethod_CloseTokens<
                                    S::Service>>>>>>>>>>>>;
}  // namespace shard_control_internal

// ShardControlService puts the chief's side of a shard on the wire.
//
// Threads: safe to share; gRPC calls it from its own threads. No call blocks or
//          works for long: LongCalls has a thread for that.
// Borrows: all constructor arguments, which must outlive the gRPC server.
class ShardControlService final : public shard_control_internal::Base {
 public:
  // Waits for steps are filed in `replies`, and answers leave through it.
  ShardControlService(ShardHost& host, ChiefCommands& commands,
                      Replies& replies, const Clock& clock);

  // `created` is called when a shard has been created or found. Must be set
  // before serving.
  using Created =
      std::function<void(const JobConfig&, const std::vector<VariableSpec>&,
                         const std::vector<PartSpec>&)>;
  void set_created(Created created) { created_ = std::move(created); }

  grpc::ServerUnaryReactor* TakeEpoch(grpc::CallbackServerContext* context,
                                      const v1::TakeEpochRequest* request,
                                      v1::TakeEpochResponse* response) override;
  grpc::ServerUnaryReactor* CreateShard(
      grpc::CallbackServerContext* context,
      const v1::CreateShardRequest* request,
      v1::CreateShardResponse* response) override;
  grpc::ServerUnaryReactor* WriteParts(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Activate(grpc::CallbackServerContext* context,
                                     const v1::ActivateRequest* request,
                                     v1::ActivateResponse* response) override;
  grpc::ServerUnaryReactor* TakeAndApply(
      grpc::CallbackServerContext* context,
      const v1::TakeAndApplyRequest* request,
      v1::TakeAndApplyResponse* response) override;
  grpc::ServerUnaryReactor* Commit(grpc::CallbackServerContext* context,
                                   const v1::CommitRequest* request,
                                   v1::CommitResponse* response) override;
  grpc::ServerUnaryReactor* ExpireWorker(
      grpc::CallbackServerContext* context,
      const v1::ExpireWorkerRequest* request,
      v1::ExpireWorkerResponse* response) override;
  grpc::ServerUnaryReactor* ReplaceMember(
      grpc::CallbackServerContext* context,
      const v1::ReplaceMemberRequest* request,
      v1::ReplaceMemberResponse* response) override;
  grpc::ServerUnaryReactor* BeginSnapshot(
      grpc::CallbackServerContext* context,
      const v1::BeginSnapshotRequest* request,
      v1::BeginSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* ReadSnapshot(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* EndSnapshot(
      grpc::CallbackServerContext* context,
      const v1::EndSnapshotRequest* request,
      v1::EndSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* CloseTokens(
      grpc::CallbackServerContext* context,
      const v1::CloseTokensRequest* request,
      v1::CloseTokensResponse* response) override;

  // Reports the progress of work to the callers that wait for it. Must be
  // called periodically.
  void AnswerOld(absl::Time now);

  // Ends the calls that wait for long work, and later ones: the process ends.
  void EndAll(const absl::Status& why);

  // Ends all calls and waits for long work under way, which uses the objects of
  // `created`, also after its call has ended. Must be called before those are
  // destroyed.
  void JoinWork();

 private:
  // Reads the chief that asks.
  //
  //   kInvalidArgument   no chief can have this identity
  //   kPermissionDenied  not the chief
  absl::StatusOr<ChiefCommands::Chief> ToChief(
      const v1::ChiefIdentity& chief) const;
  // Checks that the caller is this job's newest chief.
  absl::StatusOr<std::shared_ptr<Shard>> CheckedShard(
      const v1::ChiefIdentity& chief);

  // Checks the whole request and follows the chief. Returns the remaining work,
  // which takes long.
  absl::StatusOr<LongCalls::Work> HandleCreateShard(
      const v1::CreateShardRequest& request);
  absl::Status HandleWriteParts(const grpc::ByteBuffer& request,
                                grpc::ByteBuffer& response);
  absl::Status HandleActivate(const v1::ActivateRequest& request);
  absl::Status HandleTake(const v1::TakeAndApplyRequest& request,
                          uint64_t ticket);
  absl::Status HandleCommit(const v1::CommitRequest& request,
                            v1::CommitResponse& response);
  absl::Status HandleExpireWorker(const v1::ExpireWorkerRequest& request,
                                  v1::ExpireWorkerResponse& response);
  absl::Status HandleReplaceMember(const v1::ReplaceMemberRequest& request,
                                   v1::ReplaceMemberResponse& response);
  LongCalls::Result HandleBeginSnapshot(const ChiefCommands::Chief& chief);
  // Makes a call that LongCalls ends. `progress` must fill in the progress of
  // the work; used if `asks_again`: the caller repeats its call.
  template <typename Response>
  LongCalls::Call LongCall(grpc::ServerUnaryReactor* reactor,
                           Response* response, bool asks_again,
                           std::function<void(v1::Working&)> progress) {
    LongCalls::Call call;
    call.since = clock_.Now();
    call.end = [reactor, response](const LongCalls::Result& result) {
      if (result.ok()) response->ParseFromString(*result);
      reactor->Finish(ToGrpcStatus(result.status()));
    };
    if (!asks_again) return call;
    call.end_not_yet = [=] {
      progress(*response->mutable_working());
      reactor->Finish(grpc::Status::OK);
    };
    return call;
  }
  absl::Status HandleReadSnapshot(const grpc::ByteBuffer& request,
                                  grpc::ByteBuffer& response);
  absl::Status HandleCloseTokens(const v1::CloseTokensRequest& request);

  // Sends the answers that became ready, if there is a shard.
  void Send(ChiefCommands::Ready ready);

  ShardHost& host_;
  ChiefCommands& commands_;
  Replies& replies_;
  const Clock& clock_;
  Created created_;
  LongCalls long_calls_;  // last: its thread uses all of the above
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_SHARD_CONTROL_SERVICE_H_
