#include "server/rpc/sync_service.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"

namespace lockstep::server {
namespace {

// Gates count to the next pass, so the largest number cannot be one.
absl::Status CheckPass(int64_t pass) {
  if (pass >= 0 && pass < std::numeric_limits<int64_t>::max()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "pass is ", pass, "; passes count from 1, and 0 stands for none"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Shard>> SyncService::Admit(
    const Caller& caller, const v1::Identity& identity, int slot) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(identity));
  // With certificates, a worker must not call in the name of another.
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, slot));
  replies_.Called(caller.stream(), sender.task.index, sender.incarnation);
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(0));  // which alone has a gate
  return shard;
}

absl::StatusOr<v1::AnnounceResponse> SyncService::HandleAnnounce(
    const Caller& caller, const v1::AnnounceRequest& request) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPass(request.pass()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            Admit(caller, request.identity(), request.slot()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Gate::Announced announced,
      shard->gate()->Announce({request.identity().task_index(),
                               request.identity().incarnation(),
                               request.local_step(), request.pass(),
                               request.slot(), std::max(request.block(), 1)}));
  v1::AnnounceResponse response;
  response.set_attempt(announced.attempt);
  response.set_global_step(announced.global_step);
  switch (announced.decision) {
    case Gate::Decision::kSelected:
      response.set_decision(v1::SELECTED);
      break;
    case Gate::Decision::kNotNeeded:
      response.set_decision(v1::NOT_NEEDED);
      break;
    case Gate::Decision::kTooLate:
      response.set_decision(v1::TOO_LATE);
      break;
  }
  return response;
}

grpc::ServerUnaryReactor* SyncService::Announce(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeUnary(
      context, request, response,
      [this](const Caller& caller, const grpc::ByteBuffer& message,
             const Respond& respond) {
        ServeAnnounce(caller, message, respond);
      });
}

void SyncService::ServeAnnounce(const Caller& caller,
                                const grpc::ByteBuffer& request,
                                const Respond& respond) {
  const RpcTimer timer(RpcSide::kServer, "/lockstep.v1.SyncService/Announce");
  PassFaultPoint(FaultPoint::kPsAnnounceReceived);
  v1::AnnounceRequest message;
  const absl::Status decoded = DecodeMessage(request, message);
  if (!decoded.ok()) return respond(decoded, {});
  const absl::StatusOr<v1::AnnounceResponse> response =
      HandleAnnounce(caller, message);
  PassFaultPoint(FaultPoint::kPsAnnounceAnswering);
  timer.Done();
  respond(response.status(),
          response.ok() ? EncodeMessage(*response) : grpc::ByteBuffer());
}

grpc::ServerUnaryReactor* SyncService::TakeToken(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeUnary(context, request, response,
                    [this](const Caller& caller,
                           const grpc::ByteBuffer& message, Respond respond) {
                      ServeTakeToken(caller, message, std::move(respond));
                    });
}

void SyncService::ServeTakeToken(const Caller& caller,
                                 const grpc::ByteBuffer& request,
                                 Respond respond) {
  respond = Timed("/lockstep.v1.SyncService/TakeToken", std::move(respond));
  PassFaultPoint(FaultPoint::kPsTokenReceived);
  v1::TakeTokenRequest message;
  absl::Status status = DecodeMessage(request, message);
  if (!status.ok()) return respond(status, {});
  // Filed first, like a push: a commit in another thread may give out the token
  // at once.
  const uint64_t ticket = replies_.FileTokenWait(std::move(respond));
  status = HandleTakeToken(caller, message, ticket);
  if (!status.ok()) replies_.FailTokenWait(ticket, status);
}

absl::Status SyncService::HandleTakeToken(const Caller& caller,
                                          const v1::TakeTokenRequest& request,
                                          uint64_t ticket) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPass(request.pass()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            Admit(caller, request.identity(), request.slot()));
  const Pass pass{request.identity().task_index(),
                  request.identity().incarnation(),
                  request.local_step(),
                  request.pass(),
                  request.slot(),
                  std::max(request.block(), 1)};
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<Gate::Answer> answers,
      shard->AwaitToken({ticket, pass, request.attempt(), request.computing()},
                        clock_.Now()));
  replies_.SendTokens(answers);
  return absl::OkStatus();
}

}  // namespace lockstep::server
