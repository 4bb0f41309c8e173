// The part of ShardControlService that copies a step aside and hands it over.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/memory/spare_memory.h"
#include "common/rpc/status.h"
#include "common/wire/tensor_message.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/shard_control_service.h"

namespace lockstep {
namespace {

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

LongCalls::Result ShardControlService::HandleBeginSnapshot(
    const StepControl::Chief& chief) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            control_.CheckedShard(chief));
  shard->Grant(0);
  const absl::StatusOr<int64_t> step = shard->BeginSnapshot();
  PassFaultPoint(FaultPoint::kPsSnapshotAnswering);
  LOCKSTEP_RETURN_IF_ERROR(step.status());
  v1::BeginSnapshotResponse response;
  response.set_global_step(*step);
  for (float scalar : shard->SnapshotScalars()) response.add_scalars(scalar);
  for (int64_t rows : shard->SnapshotRows()) response.add_rows(rows);
  return response.SerializeAsString();
}

grpc::ServerUnaryReactor* ShardControlService::BeginSnapshot(
    grpc::CallbackServerContext* context,
    const v1::BeginSnapshotRequest* request,
    v1::BeginSnapshotResponse* response) {
  PassFaultPoint(FaultPoint::kPsSnapshotReceived);
  const absl::StatusOr<StepControl::Chief> chief = ToChief(request->chief());
  if (!chief.ok()) return FinishUnary(context, chief.status());
  const auto shard = control_.CheckedShard(*chief);
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
  std::byte none{};  // memcpy() must not be given a null pointer
  LOCKSTEP_RETURN_IF_ERROR(
      shard->ReadSnapshot(nothing, tensor, absl::MakeSpan(&none, 0)).status());
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

}  // namespace lockstep
