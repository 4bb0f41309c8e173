#include "server/shard_control_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault_points.h"
#include "common/grpc_status.h"
#include "common/grpc_tensor_codec.h"
#include "common/job/job_config_codec.h"
#include "common/log.h"
#include "common/spare_memory.h"
#include "common/status_macros.h"
#include "common/text/plain_text.h"
#include "common/wire_codec.h"

namespace lockstep {
namespace {

// What the job file may leave to the cluster, the chief has filled in.
absl::Status CheckFilledIn(const JobConfig& job) {
  if (job.replicas_to_aggregate > 0 && job.total_num_replicas > 0 &&
      (job.mode == SyncMode::kStrict || job.initial_tokens != -1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "job: replicas_to_aggregate is ", job.replicas_to_aggregate,
      ", total_num_replicas ", job.total_num_replicas, ", initial_tokens ",
      job.initial_tokens, "; a server needs all of them filled in"));
}

absl::StatusOr<std::vector<VariableSpec>> ToVariables(
    const v1::CreateShardRequest& request) {
  std::vector<VariableSpec> variables;
  for (const v1::VariableDescription& proto : request.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableSpec variable, FromProto(proto));
    variables.push_back(std::move(variable));
  }
  return variables;
}

absl::StatusOr<std::vector<PartSpec>> ToParts(
    const v1::CreateShardRequest& request,
    const std::vector<VariableSpec>& variables) {
  std::vector<PartSpec> parts;
  for (const v1::PartDescription& part : request.parts()) {
    if (part.variable() < 0 ||
        part.variable() >= static_cast<int>(variables.size()) ||
        part.index() != static_cast<int>(parts.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parts[", parts.size(), "] names variable ", part.variable(), " of ",
          variables.size(), " and has index ", part.index()));
    }
    const VariableSpec& variable = variables[part.variable()];
    parts.push_back(
        {part.variable(), part.offset(), part.count(), variable.dtype,
         variable.is_table() ? RowWidth(variable.shape) : 0,
         std::max<int64_t>(part.row_stride(), 1), variable.grows()});
  }
  return parts;
}

absl::StatusOr<Shard::Stretch> FindStretch(const v1::TensorSelector& selector,
                                           const Shard& shard) {
  return shard.FindStretch(selector.parts().first_part(),
                           selector.parts().num_parts(),
                           selector.first_element(), selector.num_elements());
}

// Of a growing table.
absl::Status WriteRows(const v1::WritePartsHeader& header,
                       const TensorPayload& payload, Shard& shard) {
  const v1::TensorSelector& selector = header.selector();
  if (selector.parts().num_parts() != 1 || selector.first_element() != 0 ||
      selector.num_elements() != 0) {
    return absl::InvalidArgumentError(
        "keys are given, so the selector must name one part, and no elements");
  }
  std::vector<std::byte> bytes(payload.size);
  payload.CopyTo(bytes.data());
  const std::vector<int64_t> keys(header.keys().begin(), header.keys().end());
  return shard.state().WriteRows(selector.parts().first_part(),
                                 selector.tensor(), keys, bytes);
}

// The rows that a snapshot has of a growing table.
absl::StatusOr<int64_t> ReadKeys(const v1::TensorSelector& selector,
                                 const Shard& shard, std::string& payload) {
  const int64_t count = selector.num_elements();
  const int part = selector.parts().first_part();
  const std::vector<int64_t> rows = shard.SnapshotRows();
  if (selector.parts().num_parts() != 1 || part < 0 ||
      static_cast<size_t>(part) >= rows.size() || count < 0 ||
      count > rows[part]) {
    return absl::InvalidArgumentError(absl::StrCat(
        count, " keys of ", selector.parts().num_parts(), " parts from ", part,
        " on; name one part that grows, and no more keys than it has"));
  }
  std::vector<int64_t> keys(count);
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t step, shard.ReadSnapshotKeys(part, selector.first_element(),
                                                 absl::MakeSpan(keys)));
  payload.assign(reinterpret_cast<const char*>(keys.data()),
                 keys.size() * sizeof(int64_t));
  return step;
}

}  // namespace

ShardControlService::ShardControlService(ShardHost& host,
                                         ParameterService& parameters,
                                         SyncService& sync, const Clock& clock)
    : host_(host),
      control_(host),
      parameters_(parameters),
      sync_(sync),
      clock_(clock) {
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

absl::Status ShardControlService::HandleCreateShard(
    const v1::CreateShardRequest& request, v1::CreateShardResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.CheckMayFollow(chief.job_id, chief.epoch, chief.incarnation));
  // What cannot be obeyed must not shut out who can: all of it is looked at
  // before the chief is followed.
  if (request.has_server()) {
    LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(request.server()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job, FromProto(request.job()));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckFilledIn(job));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<VariableSpec> variables,
                            ToVariables(request));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<PartSpec> parts,
                            ToParts(request, variables));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckDescription(job, variables, parts));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.FollowChief(chief.job_id, chief.epoch, chief.incarnation));
  if (request.discard()) {
    CancelWaits(absl::UnavailableError("the job goes back to a checkpoint"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Create(job, variables, parts,
                   request.discard() ? ShardHost::Keep::kNothing
                                     : ShardHost::Keep::kState));
  if (created_) created_(job, parts);
  const Shard::Report report = shard->GetReport();
  response.set_active(report.active);
  response.set_committed_step(report.committed_step);
  response.set_prepared_step(report.prepared_step);
  response.set_attempt(report.attempt);
  *response.mutable_settings() = ToProto(shard->settings());
  for (const std::vector<std::string>& slots : shard->state().SlotNames()) {
    response.add_variables()->mutable_names()->Assign(slots.begin(),
                                                      slots.end());
  }
  for (const std::string& scalar : shard->state().ScalarNames()) {
    response.add_scalars(scalar);
  }
  spdlog::info("holds {} parts of {} variables{}", parts.size(),
               variables.size(),
               report.committed_step < 0
                   ? std::string()
                   : absl::StrCat(", of step ", report.committed_step));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::CreateShard(
    grpc::CallbackServerContext* context, const v1::CreateShardRequest* request,
    v1::CreateShardResponse* response) {
  PassFaultPoint(FaultPoint::kPsCreateReceived);
  const absl::Status status = HandleCreateShard(*request, *response);
  PassFaultPoint(FaultPoint::kPsCreateAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleWriteParts(
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  v1::WritePartsHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(request, header, payload));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(header.chief()));
  if (header.keys_size() > 0) {
    response = EncodeMessage(v1::WritePartsResponse());
    return WriteRows(header, payload, *shard);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Shard::Stretch stretch,
                            FindStretch(header.selector(), *shard));
  if (payload.size != stretch.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("payload has ", payload.size,
                     " bytes; what is to be written has ", stretch.size));
  }
  std::vector<std::byte> bytes(stretch.size);
  payload.CopyTo(bytes.data());
  absl::Span<const std::byte> left = bytes;
  for (int i = 0; i < stretch.num_parts; ++i) {
    const int part = stretch.first_part + i;
    const size_t size =
        stretch.num_parts == 1 ? stretch.size : shard->PartSize(part);
    LOCKSTEP_RETURN_IF_ERROR(shard->state().Write(
        part, header.selector().tensor(), stretch.first, left.first(size)));
    left.remove_prefix(size);
  }
  response = EncodeMessage(v1::WritePartsResponse());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::WriteParts(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  PassFaultPoint(FaultPoint::kPsWriteReceived);
  const absl::Status status = HandleWriteParts(*request, *response);
  PassFaultPoint(FaultPoint::kPsWriteAnswering);
  return FinishUnary(context, status);
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

absl::Status ShardControlService::HandleBeginSnapshot(
    const v1::BeginSnapshotRequest& request,
    v1::BeginSnapshotResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(request.chief()));
  shard->Grant(0);
  LOCKSTEP_ASSIGN_OR_RETURN(int64_t step, shard->BeginSnapshot());
  response.set_global_step(step);
  for (float scalar : shard->SnapshotScalars()) response.add_scalars(scalar);
  for (int64_t rows : shard->SnapshotRows()) response.add_rows(rows);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::BeginSnapshot(
    grpc::CallbackServerContext* context,
    const v1::BeginSnapshotRequest* request,
    v1::BeginSnapshotResponse* response) {
  PassFaultPoint(FaultPoint::kPsSnapshotReceived);
  const absl::Status status = HandleBeginSnapshot(*request, *response);
  PassFaultPoint(FaultPoint::kPsSnapshotAnswering);
  return FinishUnary(context, status);
}

absl::Status ShardControlService::HandleReadSnapshot(
    const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
  v1::ReadSnapshotRequest message;
  LOCKSTEP_RETURN_IF_ERROR(DecodeMessage(request, message));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            CheckedShard(message.chief()));
  v1::ReadSnapshotHeader header;
  if (message.selector().keys()) {
    std::string keys;
    LOCKSTEP_ASSIGN_OR_RETURN(int64_t step,
                              ReadKeys(message.selector(), *shard, keys));
    header.set_global_step(step);
    const grpc::Slice payload(keys);
    response = EncodeTensorMessage(header, absl::MakeConstSpan(&payload, 1));
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Shard::Stretch stretch,
                            FindStretch(message.selector(), *shard));
  // Whether there is such a copy, before memory is taken for the answer.
  const int tensor = message.selector().tensor();
  Shard::Stretch nothing = stretch;
  nothing.size = 0;
  LOCKSTEP_RETURN_IF_ERROR(shard->ReadSnapshot(nothing, tensor, {}).status());
  if (stretch.size > ParameterService::kLargestAnswer) {
    return absl::InvalidArgumentError(
        absl::StrCat("an answer has at most ", ParameterService::kLargestAnswer,
                     " bytes; ask for fewer than ", stretch.size));
  }
  FilledSlice filled(stretch.size);
  LOCKSTEP_ASSIGN_OR_RETURN(
      int64_t step,
      shard->ReadSnapshot(stretch, tensor, {filled.memory, stretch.size}));
  header.set_global_step(step);
  response = EncodeTensorMessage(header, absl::MakeConstSpan(&filled.slice, 1));
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
  CancelAll(why);
}

void ShardControlService::CancelAll(const absl::Status& why) {
  for (uint64_t ticket : takes_.OlderThan(absl::InfiniteFuture())) {
    if (auto call = takes_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(why));
    }
  }
}

}  // namespace lockstep
