#include "server/sync_service.h"

#include "absl/strings/str_cat.h"
#include "common/fault_points.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/wire_codec.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(3);

void Fill(const StepGate::Answer& answer, v1::TakeTokenResponse& response) {
  response.set_step(answer.step);
  response.set_slot(answer.slot);
  response.set_attempt(answer.attempt);
  response.set_selected_attempt(answer.selected_attempt);
  response.set_not_needed(answer.not_needed);
  switch (answer.outcome) {
    case StepGate::Outcome::kToken:
      response.set_outcome(v1::TOKEN);
      break;
    case StepGate::Outcome::kRedo:
      response.set_outcome(v1::TOKEN_REDO);
      break;
    case StepGate::Outcome::kFinished:
      response.set_outcome(v1::TOKEN_FINISHED);
      break;
    case StepGate::Outcome::kCancelled:
      response.set_outcome(v1::TOKEN_WAIT);
      break;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Shard>> SyncService::Admit(
    const v1::Identity& identity, int slot) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(identity));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, slot));
  if (shard->gate() == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ps ", host_.task_index(), " has no token queue; ask ps 0"));
  }
  return shard;
}

absl::Status SyncService::HandleAnnounce(const v1::AnnounceRequest& request,
                                         v1::AnnounceResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            Admit(request.identity(), request.slot()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      StepGate::Announced announced,
      shard->gate()->Announce(
          {request.identity().task_index(), request.identity().incarnation(),
           request.local_step(), request.pass(), request.slot()}));
  response.set_attempt(announced.attempt);
  response.set_global_step(announced.global_step);
  switch (announced.decision) {
    case StepGate::Decision::kSelected:
      response.set_decision(v1::SELECTED);
      break;
    case StepGate::Decision::kNotNeeded:
      response.set_decision(v1::NOT_NEEDED);
      break;
    case StepGate::Decision::kTooLate:
      response.set_decision(v1::TOO_LATE);
      break;
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* SyncService::Announce(
    grpc::CallbackServerContext* context, const v1::AnnounceRequest* request,
    v1::AnnounceResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  PassFaultPoint(FaultPoint::kPsAnnounceReceived);
  const absl::Status status = HandleAnnounce(*request, *response);
  PassFaultPoint(FaultPoint::kPsAnnounceAnswering);
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerUnaryReactor* SyncService::TakeToken(
    grpc::CallbackServerContext* context, const v1::TakeTokenRequest* request,
    v1::TakeTokenResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  PassFaultPoint(FaultPoint::kPsTokenReceived);
  const uint64_t ticket = waits_.Add({reactor, response}, clock_.Now());
  const absl::Status status = HandleTakeToken(*request, ticket);
  if (!status.ok()) {
    if (auto call = waits_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(status));
    }
  }
  return reactor;
}

absl::Status SyncService::HandleTakeToken(const v1::TakeTokenRequest& request,
                                          uint64_t ticket) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            Admit(request.identity(), request.slot()));
  const Pass pass{request.identity().task_index(),
                  request.identity().incarnation(), request.local_step(),
                  request.pass(), request.slot()};
  const absl::Time now = clock_.Now();
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<StepGate::Answer> answers,
      request.computing()
          ? shard->gate()->Watch(ticket, pass, now)
          : shard->gate()->Wait(ticket, pass, request.attempt(), now));
  Finish(answers);
  return absl::OkStatus();
}

void SyncService::Finish(const std::vector<StepGate::Answer>& answers) {
  for (const StepGate::Answer& answer : answers) {
    auto call = waits_.Take(answer.ticket);
    if (!call.has_value()) continue;
    Fill(answer, *call->response);
    PassFaultPoint(FaultPoint::kPsTokenAnswering);
    call->reactor->Finish(grpc::Status::OK);
  }
}

void SyncService::AnswerOld(absl::Time now) {
  for (uint64_t ticket : waits_.OlderThan(now - kLongestWait)) {
    auto call = waits_.Take(ticket);
    if (!call.has_value()) continue;
    if (auto shard = host_.shard(); shard.ok() && (*shard)->gate()) {
      (*shard)->gate()->Cancel(ticket);
    }
    call->response->set_outcome(v1::TOKEN_WAIT);
    call->reactor->Finish(grpc::Status::OK);
  }
}

void SyncService::CancelAll(const absl::Status& why) {
  for (uint64_t ticket : waits_.OlderThan(absl::InfiniteFuture())) {
    if (auto call = waits_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(why));
    }
  }
}

}  // namespace lockstep
