// The part of ShardControlService that makes a shard and fills it.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"
#include "common/rpc/status.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "server/rpc/shard_control_service.h"

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

// What a chief has to know of a shard that there is.
void Describe(Shard& shard, v1::CreateShardResponse& response) {
  const Shard::Report report = shard.GetReport();
  response.set_active(report.active);
  response.set_committed_step(report.committed_step);
  response.set_prepared_step(report.prepared_step);
  response.set_attempt(report.attempt);
  *response.mutable_settings() = ToProto(shard.settings());
  for (const std::vector<std::string>& slots : shard.state().SlotNames()) {
    response.add_variables()->mutable_names()->Assign(slots.begin(),
                                                      slots.end());
  }
  for (const std::string& scalar : shard.state().ScalarNames()) {
    response.add_scalars(scalar);
  }
}

}  // namespace

absl::StatusOr<Shard::Stretch> ShardControlService::FindStretch(
    const v1::TensorSelector& selector, const Shard& shard) {
  return shard.FindStretch(selector.parts().first_part(),
                           selector.parts().num_parts(),
                           selector.first_element(), selector.num_elements());
}

void ShardControlService::FillWorking(const FillProgress* progress,
                                      v1::Working& working) {
  if (progress == nullptr) return;
  working.set_done_bytes(static_cast<int64_t>(progress->done()));
  working.set_total_bytes(static_cast<int64_t>(progress->total()));
}

absl::StatusOr<LongCalls::Work> ShardControlService::HandleCreateShard(
    const v1::CreateShardRequest& request) {
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
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<VariableSpec> variables,
                            ToVariables(request));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<PartSpec> parts,
                            ToParts(request, variables));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckDescription(job, variables, parts));
  LOCKSTEP_RETURN_IF_ERROR(
      host_.FollowChief(chief.job_id, chief.epoch, chief.incarnation));
  return [this, chief, discard = request.discard(), job = std::move(job),
          variables = std::move(variables),
          parts = std::move(parts)]() -> LongCalls::Result {
    // Others may have come while this one waited for the work before.
    LOCKSTEP_RETURN_IF_ERROR(
        host_.CheckChief(chief.job_id, chief.epoch, chief.incarnation));
    if (discard) {
      CancelWaits(absl::UnavailableError("the job goes back to a checkpoint"));
    }
    const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.Create(
        job, variables, parts,
        discard ? ShardHost::Keep::kNothing : ShardHost::Keep::kState);
    PassFaultPoint(FaultPoint::kPsCreateAnswering);
    LOCKSTEP_RETURN_IF_ERROR(shard.status());
    if (created_) created_(job, parts);
    v1::CreateShardResponse response;
    Describe(**shard, response);
    spdlog::info("holds {} parts of {} variables{}", parts.size(),
                 variables.size(),
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
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  long_calls_.Run([this, reactor, request, response](absl::Status status) {
    if (status.ok()) status = HandleWriteParts(*request, *response);
    PassFaultPoint(FaultPoint::kPsWriteAnswering);
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

}  // namespace lockstep
