#include "worker/client/pulls.h"

#include <numeric>
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
// The values of a pull are all at hand, and few calls cost least. The limit
// leaves work for several threads that copy, and bounds what is sent where the
// server overwrites values before they are copied.
constexpr size_t kLargestMappedPull = size_t{16} << 20;

}  // namespace

absl::Status Pulls::Take(const grpc::ByteBuffer& response, int server,
                         const PullCall& call) {
  const Chunk& chunk = call.chunk;
  v1::PullHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (header.values_size() > 0) {
    LOCKSTEP_RETURN_IF_ERROR(
        mapped_.Copy(header.values(), Holder(server), chunk));
  } else if (chunk.table.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(StoreRows(
        payload, *chunk.table, chunks_.rows(server, call.first), memory_));
  } else if (payload.size == chunk.size) {
    StoreChunk(payload, chunk, memory_);
  } else {
    return absl::InternalError(absl::StrCat(
        "Pull answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  // The answer's step, not the one asked for: the server may be ahead by then.
  for (size_t i = 0; i < call.count; ++i) {
    chunks_.Hold(server, call.first + i, {header.step(), 0});
  }
  return absl::OkStatus();
}

void Pulls::Start(int server, size_t index, int64_t step, bool mapped,
                  ChunkTransfer::Report report) {
  const PullCall& call = calls_[server][index];
  const Chunk& chunk = call.chunk;
  v1::PullRequest request;
  *request.mutable_identity() = ToProto(links_.self());
  request.mutable_parts()->set_first_part(chunk.first_part);
  request.mutable_parts()->set_num_parts(chunk.num_parts);
  request.set_step(step);
  request.set_server(Holder(server));
  if (chunk.table.has_value()) {
    AddRows(chunks_.rows(server, call.first), *request.mutable_rows());
  } else {
    request.set_shared(mapped);
  }
  const size_t bytes = chunk.table.has_value()
                           ? chunks_.ValueBytes(server, call.first)
                           : chunk.size;
  PassFaultPoint(FaultPoint::kWorkerPullSend);
  links_.channel(Holder(server))
      .Call(ServerChannel::SizeOf(bytes), kPull, EncodeMessage(request),
            CallDeadline(request.shared() ? 0 : bytes),
            [this, server, index, step, report = std::move(report)](
                absl::Status status, const grpc::ByteBuffer& response) {
              PassFaultPoint(FaultPoint::kWorkerPullAnswered);
              if (status.ok()) {
                status = Take(response, server, calls_[server][index]);
              }
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

HeldChunks::Lists Pulls::MakeCalls(const HeldChunks::Lists& missing) {
  calls_.clear();
  HeldChunks::Lists lists;
  for (size_t server = 0; server < missing.size(); ++server) {
    const bool mapped = mapped_.Maps(Holder(static_cast<int>(server)));
    calls_.push_back(MakePullCalls(chunks_.chunks()[server], missing[server],
                                   mapped ? kLargestMappedPull : 0));
    lists.emplace_back(calls_.back().size());
    std::iota(lists.back().begin(), lists.back().end(), size_t{0});
  }
  return lists;
}

absl::StatusOr<int64_t> Pulls::Pull(int64_t step, HeldChunks::Among among) {
  ChunkTransfer transfer(
      links_.TransferOptions("pull"), MakeCalls(chunks_.Missing(step, among)),
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
