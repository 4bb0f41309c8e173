// The part of ParameterClient that reads variables.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "worker/client/parameter_client.h"
#include "worker/client/row_codec.h"

namespace lockstep {
namespace {

constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";

// What travels over an open stream, among calls without tensors.
constexpr size_t kSmallChunk = size_t{64} << 10;
constexpr absl::Duration kCallDeadline = absl::Seconds(10);

}  // namespace

ParameterClient::ChunkLists ParameterClient::Missing(
    std::optional<int64_t> step) const {
  ChunkLists missing(chunks_.size());
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      const Held& held = held_[server][i];
      if (chunks_[server][i].table.has_value() && !HasRows(server, i)) continue;
      if (step != held.step || held.attempt != 0) missing[server].push_back(i);
    }
  }
  return missing;
}

absl::Status ParameterClient::TakePulled(const grpc::ByteBuffer& response,
                                         int server, size_t index) {
  const Chunk& chunk = chunks_[server][index];
  v1::PullHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (header.values_size() > 0) {
    LOCKSTEP_RETURN_IF_ERROR(Copy(header.values(), server, chunk));
  } else if (chunk.table.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(
        StoreRows(payload, *chunk.table, routed_[server][index], memory_));
  } else if (payload.size == chunk.size) {
    Store(payload, chunk);
  } else {
    return absl::InternalError(absl::StrCat(
        "Pull answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  held_[server][index] = {header.step(), 0};
  return absl::OkStatus();
}

void ParameterClient::StartPull(int server, size_t index, int64_t step,
                                bool shared, ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_[server][index];
  v1::PullRequest request;
  *request.mutable_identity() = ToProto(options_.self);
  request.mutable_parts()->set_first_part(chunk.first_part);
  request.mutable_parts()->set_num_parts(chunk.num_parts);
  request.set_step(step);
  request.set_server(server);
  if (chunk.table.has_value()) {
    AddRows(routed_[server][index], *request.mutable_rows());
  } else {
    request.set_shared(shared);
  }
  PassFaultPoint(FaultPoint::kWorkerPullSend);
  channels_[server]->Call(
      CallSize(server, index), kPull, EncodeMessage(request), kCallDeadline,
      [this, server, index, step, report = std::move(report)](
          absl::Status status, grpc::ByteBuffer response) {
        PassFaultPoint(FaultPoint::kWorkerPullAnswered);
        if (status.ok()) status = TakePulled(response, server, index);
        if (absl::IsAborted(status)) {
          // Two steps went by meanwhile. What is sent is there to stay.
          StartPull(server, index, step, /*shared=*/false, report);
          return;
        }
        report(Reconsider(status, server));
      });
}

void ParameterClient::RouteTables() {
  for (size_t server = 0; server < chunks_.size(); ++server) {
    for (size_t i = 0; i < chunks_[server].size(); ++i) {
      const std::optional<PlannedPart>& table = chunks_[server][i].table;
      if (!table.has_value()) continue;
      routed_[server][i] = RouteRows(*table, plan_.variables[table->variable],
                                     memory_.rows(table->variable).ids);
      held_[server][i] = Held();
    }
  }
}

// There are few small ones: a server's chunks are large, but for the last.
ServerChannel::Size ParameterClient::CallSize(int server, size_t index) const {
  const Chunk& chunk = chunks_[server][index];
  size_t size = chunk.size;
  if (chunk.table.has_value()) {
    const VariableSpec& variable = plan_.variables[chunk.table->variable];
    size = routed_[server][index].rows.size() * RowWidth(variable.shape) *
           ElementSize(variable.dtype);
  }
  return size <= kSmallChunk ? ServerChannel::Size::kSmall
                             : ServerChannel::Size::kLarge;
}

absl::StatusOr<int64_t> ParameterClient::Pull(int64_t step) {
  LOCKSTEP_RETURN_IF_ERROR(OpenSharedMemory());
  RouteTables();
  const bool one_step = step >= 0;
  while (true) {
    ChunkTransfer transfer(
        TransferOptions("pull"),
        Missing(one_step ? std::optional(step) : std::nullopt),
        [&](int server, size_t index, ChunkTransfer::Report report) {
          StartPull(server, index, step, Shares(server), std::move(report));
        });
    LOCKSTEP_RETURN_IF_ERROR(Finish(transfer));
    int64_t newest = step;
    for (const auto& of_server : held_) {
      for (const Held& held : of_server) newest = std::max(newest, held.step);
    }
    if (!one_step || newest == step) return newest;
    // Training went on while this worker pulled: ask for the newer step.
    step = newest;
  }
}

}  // namespace lockstep
