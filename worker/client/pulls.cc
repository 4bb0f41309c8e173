#include "worker/client/pulls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "worker/client/chunk_messages.h"
#include "worker/client/exchange/call_deadline.h"

namespace lockstep::worker {
namespace {

constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";
constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

absl::Status Pulls::Take(const grpc::ByteBuffer& response, int server,
                         size_t index) {
  const Chunk& chunk = chunks_.chunk(server, index);
  v1::PullHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (header.values_size() > 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        mapped_.Copy(header.values(), Holder(server), chunk));
  } else if (chunk.table.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(
        StoreRows(payload, *chunk.table, chunks_.rows(server, index), memory_));
  } else if (payload.size == chunk.size) {
    StoreChunk(payload, chunk, memory_);
  } else {
    return absl::InternalError(absl::StrCat(
        "Pull answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  // The answer's step, not the one asked for: the server may be ahead by then.
  chunks_.Hold(server, index, {header.step(), 0});
  return absl::OkStatus();
}

void Pulls::Start(int server, size_t index, int64_t step, bool mapped,
                  ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_.chunk(server, index);
  v1::PullRequest request;
  *request.mutable_identity() = ToProto(links_.self());
  request.mutable_parts()->set_first_part(chunk.first_part);
  request.mutable_parts()->set_num_parts(chunk.num_parts);
  request.set_step(step);
  request.set_server(Holder(server));
  if (chunk.table.has_value()) {
    AddRows(chunks_.rows(server, index), *request.mutable_rows());
  } else {
    request.set_shared(mapped);
  }
  const size_t bytes = chunks_.ValueBytes(server, index);
  PassFaultPoint(FaultPoint::kWorkerPullSend);
  links_.channel(Holder(server))
      .Call(ServerChannel::SizeOf(bytes), kPull, EncodeMessage(request),
            CallDeadline(request.shared() ? 0 : bytes),
            [this, server, index, step, report = std::move(report)](
                absl::Status status, const grpc::ByteBuffer& response) {
              PassFaultPoint(FaultPoint::kWorkerPullAnswered);
              if (status.ok()) status = Take(response, server, index);
              if (absl::IsAborted(status)) {
                // The server committed two steps between its answer and the
                // copy, and may do so again. Values in the answer itself cannot
                // be overwritten.
                Start(server, index, step, /*mapped=*/false, report);
                return;
              }
              report(mapped_.Reconsider(status, Holder(server)));
            });
}

absl::StatusOr<int64_t> Pulls::Pull(int64_t step, HeldChunks::Among among) {
  ChunkTransfer transfer(
      links_.TransferOptions("pull"), chunks_.Missing(step, among),
      [&](int server, size_t index, ChunkTransfer::Report report) {
        Start(server, index, step, mapped_.Maps(Holder(server)),
              std::move(report));
      });
  LOCKSTEP_RETURN_IF_ERROR(links_.Finish(transfer));
  const int64_t newest = chunks_.Newest(step);
  // The values may be of several steps then: those that lack the newest one are
  // not pulled here, as it may be over as well before they come. The caller
  // takes a new token, and may be told to leave.
  if (step >= 0) Note(/*overtaken=*/newest != step);
  return newest;
}

void Pulls::Note(bool overtaken) {
  const absl::Time now = Clock::Real().Now();
  if (overtaken_ == 0) reported_ = now;
  overtaken_ = overtaken ? overtaken_ + 1 : 0;
  if (!overtaken || now - reported_ < kReportEvery) return;
  reported_ = now;
  spdlog::info(
      "{} pulls in a row ended after their step: pulls take longer than "
      "steps",
      overtaken_);
}

}  // namespace lockstep::worker
