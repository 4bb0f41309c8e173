#include "server/rpc/shard_control_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/memory/spare_memory.h"
#include "common/text/count_text.h"
#include "common/text/plain_text.h"
#include "common/wire/standing_codec.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "server/rpc/shard_codec.h"
#include "server/rpc/tensors_codec.h"

namespace lockstep::server {
namespace {

// The time that a call waits for unfinished work before it is answered with the
// progress.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

}  // namespace

ShardControlService::ShardControlService(ShardHost& host,
                                         ChiefCommands& commands,
                                         Replies& replies, const Clock& clock)
    : host_(host),
      commands_(commands),
      replies_(replies),
      clock_(clock),
      long_calls_(clock) {}

absl::StatusOr<ChiefCommands::Chief> ShardControlService::ToChief(
    const v1::ChiefIdentity& chief) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(chief.identity()));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckIsChief(sender.task));
  return ChiefCommands::Chief{std::move(sender.job_id), chief.epoch(),
                              sender.incarnation};
}

absl::StatusOr<std::shared_ptr<Shard>> ShardControlService::CheckedShard(
    const v1::ChiefIdentity& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief who, ToChief(chief));
  return commands_.CheckedShard(who);
}

grpc::ServerUnaryReactor* ShardControlService::TakeEpoch(
    grpc::CallbackServerContext* context, const v1::TakeEpochRequest* request,
    v1::TakeEpochResponse* response) {
  PassFaultPoint(FaultPoint::kPsEpochReceived);
  const absl::StatusOr<ChiefCommands::Chief> chief = ToChief(request->chief());
  if (!chief.ok()) return FinishUnary(context, chief.status());
  absl::StatusOr<uint64_t> epoch = commands_.TakeEpoch(
      chief->job_id, request->newer_than(), chief->incarnation);
  if (!epoch.ok()) return FinishUnary(context, epoch.status());
  response->set_epoch(*epoch);
  PassFaultPoint(FaultPoint::kPsEpochAnswering);
  return FinishUnary(context, absl::OkStatus());
}

absl::StatusOr<LongCalls::Work> ShardControlService::HandleCreateShard(
    const v1::CreateShardRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.CheckMayFollow(chief.job_id, chief.epoch, chief.incarnation));
  // A request that cannot be carried out must not shut out the chief that the
  // server follows, so the whole request is checked first.
  if (request.has_server()) {
    LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(request.server()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ShardDescription wanted, ToDescription(request));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckMirrors(wanted.job, wanted.parts));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.CheckDescription(wanted.job, wanted.variables, wanted.parts));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.FollowChief(chief.job_id, chief.epoch, chief.incarnation));
  return [this, chief, discard = request.discard(),
          wanted = std::move(wanted)]() -> LongCalls::Result {
    // A newer chief may have come while this call waited for other work.
    LOCKSTEP_RETURN_IF_ERROR(
        host_.CheckChief(chief.job_id, chief.epoch, chief.incarnation));
    const auto let_go = [this, discard] {
      replies_.LetGo(absl::UnavailableError(
          discard ? "the job goes back to a checkpoint"
                  : "the server opens its state again; retry"));
    };
    const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.Create(
        wanted.job, wanted.variables, wanted.parts,
        discard ? ShardHost::Keep::kNothing : ShardHost::Keep::kState, let_go);
    PassFaultPoint(FaultPoint::kPsCreateAnswering);
    LOCKSTEP_RETURN_IF_ERROR(shard.status());
    if (created_) created_(wanted.job, wanted.variables, wanted.parts);
    v1::CreateShardResponse response = Describe(**shard);
    FillStandings(host_.Standings(), *response.mutable_workers());
    spdlog::info("holds {} of {}{}",
                 CountText(std::ssize(wanted.parts), "part"),
                 CountText(std::ssize(wanted.variables), "variable"),
                 response.committed_step() < 0
                     ? std::string()
                     : absl::StrCat(", of step ", response.committed_step()));
    return response.SerializeAsString();
  };
}

grpc::ServerUnaryReactor* ShardControlService::CreateShard(
    grpc::CallbackServerContext* context, const v1::CreateShardRequest* request,
    v1::CreateShardResponse* response) {
  PassFaultPoint(FaultPoint::kPsCreateReceived);
  absl::StatusOr<LongCalls::Work> work = HandleCreateShard(*request);
  if (!work.ok()) return FinishUnary(context, work.status());
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto progress = [this](v1::Working& working) {
    FillWorking(host_.fill_progress().get(), working);
  };
  long_calls_.Serve(
      absl::StrCat("CreateShard ", request->SerializeAsString()),
      LongCall(reactor, response, request->asks_again(), progress),
      *std::move(work));
  return reactor;
}

absl::Status ShardControlService::HandleWriteParts(
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  v1::WritePartsHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(request, header, payload));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(header.chief()));
  LOCKSTEP_RETURN_IF_ERROR(WriteTensors(header, payload, *shard));
  response = EncodeMessage(v1::WritePartsResponse());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::WriteParts(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  PassFaultPoint(FaultPoint::kPsWriteReceived);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  // A payload is copied into the state, which takes long for gRPC's threads.
  long_calls_.Run([this, reactor, request, response](absl::Status status) {
    if (status.ok()) status = HandleWriteParts(*request, *response);
    PassFaultPoint(FaultPoint::kPsWriteAnswering);
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

absl::Status ShardControlService::HandleActivate(
    const v1::ActivateRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  Opening opening;
  opening.global_step = request.global_step();
  opening.scalars.assign(request.scalars().begin(), request.scalars().end());
  opening.attempt = request.attempt();
  LOCKSTEP_ASSIGN_OR_RETURN(opening.settings, FromProto(request.settings()));
  for (const v1::ExpiredWorker& expired : request.expired()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckIncarnation("expired.incarnation", expired.incarnation()));
    opening.expired.emplace_back(expired.worker(), expired.incarnation());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(opening.workers, FromProto(request.workers()));
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefCommands::Ready ready,
                            commands_.Activate(chief, opening));
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

grpc::ServerUnaryReactor* ShardControlService::TakeAndApply(
    grpc::CallbackServerContext* context,
    const v1::TakeAndApplyRequest* request,
    v1::TakeAndApplyResponse* response) {
  PassFaultPoint(FaultPoint::kPsTakeReceived);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // Filed first: a push in another thread may answer the take at once.
  const uint64_t ticket = replies_.FileTake({reactor, response});
  const absl::Status status = HandleTake(*request, ticket);
  if (!status.ok()) replies_.FailTake(ticket, status);
  return reactor;
}

absl::Status ShardControlService::HandleTake(
    const v1::TakeAndApplyRequest& request, uint64_t ticket) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ChiefCommands::Ready ready,
      commands_.Take(chief, ticket, TakeOrderFrom(request)));
  Send(std::move(ready));
  return absl::OkStatus();
}

absl::Status ShardControlService::HandleCommit(const v1::CommitRequest& request,
                                               v1::CommitResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  std::vector<std::vector<int>> contributors;
  for (const v1::Workers& set : request.contributors()) {
    contributors.emplace_back(set.workers().begin(), set.workers().end());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      ChiefCommands::Committed committed,
      commands_.Commit(chief, request.step(), request.attempt(), contributors));
  for (int worker : committed.members) response.add_workers(worker);
  response.set_global_step(committed.global_step);
  response.set_redone_attempt(committed.redone_attempt);
  Send(std::move(committed.ready));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::Commit(
    grpc::CallbackServerContext* context, const v1::CommitRequest* request,
    v1::CommitResponse* response) {
  PassFaultPoint(FaultPoint::kPsCommitReceived);
  const absl::Status status = HandleCommit(*request, *response);
  PassFaultPoint(FaultPoint::kPsCommitAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleExpireWorker(
    const v1::ExpireWorkerRequest& request,
    v1::ExpireWorkerResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckIncarnation("incarnation", request.incarnation()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ChiefCommands::Expired expired,
      commands_.ExpireWorker(chief, request.worker(), request.incarnation(),
                             request.step(), request.attempt(),
                             request.input_ended()));
  response.set_incarnation(expired.incarnation);
  response.set_held_announcement(expired.held_announcement);
  response.set_held_token(expired.held_token);
  response.set_step(expired.step);
  response.set_attempt(expired.attempt);
  Send(std::move(expired.ready));
  // At the start of a job as well, when there may have been no such process.
  spdlog::info(
      "processes of worker {} up to incarnation {} are shut out ({}); "
      "step {}, attempt {}",
      request.worker(), expired.incarnation, CutText(request.reason()),
      expired.step, expired.attempt);
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
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      ChiefCommands::Replaced replaced,
      commands_.ReplaceMember(chief, request.worker(), request.step(),
                              request.attempt()));
  response.set_replaced(replaced.by.has_value());
  response.set_by(replaced.by.value_or(0));
  response.set_step(replaced.step);
  response.set_attempt(replaced.attempt);
  if (replaced.by.has_value()) {
    spdlog::info("worker {} is replaced by worker {} ({}); step {}, attempt {}",
                 request.worker(), *replaced.by, CutText(request.reason()),
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

LongCalls::Result ShardControlService::HandleBeginSnapshot(
    const ChiefCommands::Chief& chief) {
  // A push must not commit a step during the copy.
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            commands_.WithdrawGrant(chief));
  const absl::StatusOr<int64_t> step = shard->BeginSnapshot();
  PassFaultPoint(FaultPoint::kPsSnapshotAnswering);
  LOCKSTEP_RETURN_IF_ERROR(step.status());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> snapshot,
                            shard->snapshot());
  v1::BeginSnapshotResponse response;
  response.set_global_step(snapshot->step());
  for (float scalar : snapshot->scalars()) response.add_scalars(scalar);
  for (int64_t rows : snapshot->num_rows()) response.add_rows(rows);
  return response.SerializeAsString();
}

grpc::ServerUnaryReactor* ShardControlService::BeginSnapshot(
    grpc::CallbackServerContext* context,
    const v1::BeginSnapshotRequest* request,
    v1::BeginSnapshotResponse* response) {
  PassFaultPoint(FaultPoint::kPsSnapshotReceived);
  const absl::StatusOr<ChiefCommands::Chief> chief = ToChief(request->chief());
  if (!chief.ok()) return FinishUnary(context, chief.status());
  // Checked again in HandleBeginSnapshot(): a newer chief may come while the
  // call waits for other long work.
  const auto shard = commands_.CheckedShard(*chief);
  if (!shard.ok()) return FinishUnary(context, shard.status());
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto progress = [shard = *shard](v1::Working& working) {
    FillWorking(shard->snapshot_progress().get(), working);
  };
  long_calls_.Serve(
      absl::StrCat("BeginSnapshot ", request->SerializeAsString()),
      LongCall(reactor, response, request->asks_again(), progress),
      [this, who = *chief] { return HandleBeginSnapshot(who); });
  return reactor;
}

absl::Status ShardControlService::HandleReadSnapshot(
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  v1::ReadSnapshotRequest message;
  LOCKSTEP_RETURN_IF_ERROR(DecodeMessage(request, message));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(message.chief()));
  // In gRPC's thread: kLargestAnswer bounds the work.
  LOCKSTEP_ASSIGN_OR_RETURN(response, ReadTensors(message.selector(), *shard));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::ReadSnapshot(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  PassFaultPoint(FaultPoint::kPsReadReceived);
  const absl::Status status = HandleReadSnapshot(*request, *response);
  PassFaultPoint(FaultPoint::kPsReadAnswering);
  return FinishUnary(context, status);
}

grpc::ServerUnaryReactor* ShardControlService::EndSnapshot(
    grpc::CallbackServerContext* context, const v1::EndSnapshotRequest* request,
    v1::EndSnapshotResponse*) {
  PassFaultPoint(FaultPoint::kPsReleaseReceived);
  absl::StatusOr<std::shared_ptr<Shard>> shard = CheckedShard(request->chief());
  if (!shard.ok()) return FinishUnary(context, shard.status());
  (*shard)->EndSnapshot();
  ReturnFreeMemory();  // the copy was as large as the state
  PassFaultPoint(FaultPoint::kPsReleaseAnswering);
  return FinishUnary(context, absl::OkStatus());
}

absl::Status ShardControlService::HandleCloseTokens(
    const v1::CloseTokensRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ChiefCommands::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Gate::Answer> answers,
                            commands_.CloseTokens(chief));
  replies_.SendTokens(std::move(answers));
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

void ShardControlService::Send(ChiefCommands::Ready ready) {
  // If the shard was discarded meanwhile, its calls have been ended.
  if (auto shard = host_.shard(); shard.ok()) {
    replies_.Send(**shard, std::move(ready));
  }
}

void ShardControlService::AnswerOld(absl::Time now) {
  long_calls_.AnswerOld(now - kLongestWait);
}

void ShardControlService::EndAll(const absl::Status& why) {
  long_calls_.End(why);
}

void ShardControlService::JoinWork() { long_calls_.Join(); }

}  // namespace lockstep::server
