#include "server/rpc/shard_control_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "common/text/plain_text.h"
#include "common/wire/wire_codec.h"

namespace lockstep {

ShardControlService::ShardControlService(ShardHost& host,
                                         ParameterService& parameters,
                                         SyncService& sync, const Clock& clock)
    : host_(host),
      control_(host),
      parameters_(parameters),
      sync_(sync),
      clock_(clock),
      long_calls_(clock) {
  parameters_.set_ready([this](Shard& shard, ShardAnswers answers) {
    Finish(shard, std::move(answers));
  });
}

absl::StatusOr<StepControl::Chief> ShardControlService::ToChief(
    const v1::ChiefIdentity& chief) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(chief.identity()));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckIsChief(sender.task));
  return StepControl::Chief{std::move(sender.job_id), chief.epoch(),
                            sender.incarnation};
}

absl::StatusOr<std::shared_ptr<Shard>> ShardControlService::CheckedShard(
    const v1::ChiefIdentity& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief who, ToChief(chief));
  return control_.CheckedShard(who);
}

grpc::ServerUnaryReactor* ShardControlService::TakeEpoch(
    grpc::CallbackServerContext* context, const v1::TakeEpochRequest* request,
    v1::TakeEpochResponse* response) {
  PassFaultPoint(FaultPoint::kPsEpochReceived);
  const absl::StatusOr<StepControl::Chief> chief = ToChief(request->chief());
  if (!chief.ok()) return FinishUnary(context, chief.status());
  absl::StatusOr<uint64_t> epoch = control_.TakeEpoch(
      chief->job_id, request->newer_than(), chief->incarnation);
  if (!epoch.ok()) return FinishUnary(context, epoch.status());
  response->set_epoch(*epoch);
  PassFaultPoint(FaultPoint::kPsEpochAnswering);
  return FinishUnary(context, absl::OkStatus());
}

absl::Status ShardControlService::HandleActivate(
    const v1::ActivateRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  StepControl::Opening opening;
  opening.global_step = request.global_step();
  opening.scalars.assign(request.scalars().begin(), request.scalars().end());
  opening.attempt = request.attempt();
  LOCKSTEP_ASSIGN_OR_RETURN(opening.settings, FromProto(request.settings()));
  for (const v1::ExpiredWorker& expired : request.expired()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckIncarnation("expired.incarnation", expired.incarnation()));
    opening.expired.emplace_back(expired.worker(), expired.incarnation());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(StepControl::Ready ready,
                            control_.Activate(chief, opening));
  SetLogStep(opening.global_step);
  Send(std::move(ready));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::Activate(
    grpc::CallbackServerContext* context, const v1::ActivateRequest* request,
    v1::ActivateResponse*) {
  PassFaultPoint(FaultPoint::kPsActivateReceived);
  const absl::Status status = HandleActivate(*request);
  PassFaultPoint(FaultPoint::kPsActivateAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleExpireWorker(
    const v1::ExpireWorkerRequest& request,
    v1::ExpireWorkerResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckIncarnation("incarnation", request.incarnation()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      StepControl::Expired expired,
      control_.ExpireWorker(chief, request.worker(), request.incarnation(),
                            request.step(), request.attempt()));
  response.set_incarnation(expired.incarnation);
  response.set_held_announcement(expired.held_announcement);
  response.set_held_token(expired.held_token);
  response.set_step(expired.step);
  response.set_attempt(expired.attempt);
  Send(std::move(expired.ready));
  spdlog::info("worker {} is gone ({}); step {}, attempt {}", request.worker(),
               CutText(request.reason()), expired.step, expired.attempt);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::ExpireWorker(
    grpc::CallbackServerContext* context,
    const v1::ExpireWorkerRequest* request,
    v1::ExpireWorkerResponse* response) {
  PassFaultPoint(FaultPoint::kPsExpireReceived);
  const absl::Status status = HandleExpireWorker(*request, *response);
  PassFaultPoint(FaultPoint::kPsExpireAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleReplaceMember(
    const v1::ReplaceMemberRequest& request,
    v1::ReplaceMemberResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      StepControl::Replaced replaced,
      control_.ReplaceMember(chief, request.worker(), request.step(),
                             request.attempt()));
  response.set_replaced(replaced.by >= 0);
  response.set_by(std::max(replaced.by, 0));
  response.set_step(replaced.step);
  response.set_attempt(replaced.attempt);
  if (replaced.by >= 0) {
    spdlog::info("worker {} is replaced by worker {} ({}); step {}, attempt {}",
                 request.worker(), replaced.by, CutText(request.reason()),
                 replaced.step, replaced.attempt);
  }
  Send(std::move(replaced.ready));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::ReplaceMember(
    grpc::CallbackServerContext* context,
    const v1::ReplaceMemberRequest* request,
    v1::ReplaceMemberResponse* response) {
  PassFaultPoint(FaultPoint::kPsReplaceReceived);
  const absl::Status status = HandleReplaceMember(*request, *response);
  PassFaultPoint(FaultPoint::kPsReplaceAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleCloseTokens(
    const v1::CloseTokensRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(request.chief()));
  if (shard->gate() == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", host_.task_index(), " has no token queue; ask ps 0"));
  }
  sync_.Finish(shard->gate()->Finish());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::CloseTokens(
    grpc::CallbackServerContext* context, const v1::CloseTokensRequest* request,
    v1::CloseTokensResponse*) {
  PassFaultPoint(FaultPoint::kPsCloseReceived);
  const absl::Status status = HandleCloseTokens(*request);
  PassFaultPoint(FaultPoint::kPsCloseAnswering);
  return FinishUnary(context, status);
}

void ShardControlService::CancelWaits(const absl::Status& why) {
  parameters_.CancelAll(why);
  sync_.CancelAll(why);
  CancelTakes(why);
}

void ShardControlService::CancelAll(const absl::Status& why) {
  CancelTakes(why);
  long_calls_.End(why);
}

void ShardControlService::CancelTakes(const absl::Status& why) {
  for (uint64_t ticket : takes_.OlderThan(absl::InfiniteFuture())) {
    if (auto call = takes_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(why));
    }
  }
}

}  // namespace lockstep
