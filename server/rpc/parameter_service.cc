#include "server/rpc/parameter_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "common/trace/span_recorder.h"
#include "common/wire/shared_memory_codec.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "server/rpc/push_codec.h"
#include "server/rpc/tensors_codec.h"

namespace lockstep::server {
namespace {

// The step of a PullRequest that names none.
constexpr int64_t kNewestStep = -1;

size_t BytesOf(const std::vector<PartGradient>& gradients) {
  size_t bytes = 0;
  for (const PartGradient& gradient : gradients) {
    for (const auto& slice : gradient.slices) bytes += slice.size;
  }
  return bytes;
}

absl::Status CheckStreamed(size_t bytes) {
  if (bytes <= ParameterService::kLargestStreamed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the answer would have ", bytes, " bytes of tensors; a stream's have at ",
      "most ", ParameterService::kLargestStreamed,
      ": make this a call of its own"));
}

size_t BytesOf(const std::vector<LentBytes>& values) {
  size_t bytes = 0;
  for (const LentBytes& value : values) bytes += value.bytes.size();
  return bytes;
}

// Opens the memory that a worker offers. The reason of a failure is only
// logged, within `budget`: in the answer it would show a caller which files the
// processes of this host have open.
absl::StatusOr<std::shared_ptr<const PeerMemory>> OpenOffered(
    const v1::SharedFile& file, const TaskId& task, LogBudget& budget) {
  auto memory = PeerMemory::Open(FromProto(file), PeerMemory::Require::kSealed);
  if (memory.ok() || absl::IsInvalidArgument(memory.status())) return memory;
  if (budget.Take(Clock::Real().Now())) {
    spdlog::info("shares no memory with {}: {}", task.ToString(),
                 std::string(memory.status().message()));
  }
  return absl::NotFoundError(
      "this server cannot open the memory: it is of another host, container or "
      "user, or does not match its description; the server's log says which");
}

SpanRecorder& Spans() { return SpanRecorder::Of(SpanRecorder::Role::kServer); }

// Records the receipt of a push, from the time `received` until now.
void RecordReceipt(const Push& push, bool shared, int64_t received) {
  uint8_t flags = shared ? Span::kShared : 0;
  if (!push.gradients.empty() &&
      push.gradients.front().type == GradientType::kBFloat16) {
    flags |= Span::kBFloat16;
  }
  Spans().Add({.kind = SpanKind::kReceive,
               .flags = flags,
               .attempt = SpanAttempt(push.attempt),
               .part = push.first_part,
               .peer = push.pass.worker,
               .step = push.pass.local_step,
               .begin = received,
               .end = Spans().Now()});
}

}  // namespace

grpc::ServerUnaryReactor* ParameterService::Push(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeLending(
      context, request, response,
      [this](const Caller& caller, const grpc::ByteBuffer& message,
             Respond respond, BreakOff break_off) {
        ServePush(caller, message, std::move(respond), std::move(break_off));
      });
}

void ParameterService::ServePush(const Caller& caller,
                                 const grpc::ByteBuffer& request,
                                 Respond respond, BreakOff break_off) {
  respond = Timed("/lockstep.v1.ParameterService/Push", std::move(respond));
  PassFaultPoint(FaultPoint::kPsPushReceived);
  const int64_t received = Spans().Now();
  v1::PushHeader header;
  TensorPayload payload;
  absl::Status status = DecodeTensorMessage(request, header, payload);
  if (!status.ok()) return respond(status, {});
  // Filed first: another thread may answer the push before AddPush() has
  // returned in this one.
  const bool streamed = break_off == nullptr;
  const uint64_t ticket = replies_.FilePush(
      {std::move(respond), header.shared(), header.parts().first_part(),
       header.parts().num_parts(), std::move(break_off)});
  status = HandlePush(caller, header, payload, ticket, received, streamed);
  if (!status.ok()) replies_.FailPush(ticket, status);
}

absl::Status ParameterService::HandlePush(const Caller& caller,
                                          const v1::PushHeader& header,
                                          const TensorPayload& payload,
                                          uint64_t ticket, int64_t received,
                                          bool streamed) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(header.identity()));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  if (header.has_server()) {
    LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(header.server()));
  }
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, header.slot()));
  replies_.Called(caller.stream(), sender.task.index, sender.incarnation);
  // The second question is asked under the lock of the postponed calls; see
  // PostponedCalls::Add(). A call that continues is admitted anew: its worker
  // may have been fenced off meanwhile.
  if (shard->engine().AwaitsCommit(header.local_step()) &&
      replies_.Postpone(*shard, header.local_step(),
                        [this, caller, header, payload, ticket, received,
                         streamed](const absl::Status& status) {
                          const absl::Status handled =
                              status.ok()
                                  ? HandlePush(caller, header, payload, ticket,
                                               received, streamed)
                                  : status;
                          if (!handled.ok()) replies_.FailPush(ticket, handled);
                        })) {
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(lockstep::server::Push push,
                            ToPush(header, payload, *shard));
  if (streamed && push.return_values && !header.shared()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const size_t size,
        shard->SizeOf(push.first_part, header.parts().num_parts()));
    LOCKSTEP_RETURN_IF_ERROR(CheckStreamed(size));
  }
  moved_(BytesOf(push.gradients));
  RecordReceipt(push, header.shared(), received);
  LOCKSTEP_ASSIGN_OR_RETURN(ShardAnswers answers,
                            shard->engine().AddPush(ticket, std::move(push)));
  replies_.Send(*shard, commands_.Settle(*shard, std::move(answers)));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ParameterService::Pull(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeLending(
      context, request, response,
      [this, context](const Caller& caller, const grpc::ByteBuffer& message,
                      const Respond& respond, const BreakOff& break_off) {
        ServePull(caller, message, respond, {break_off, context});
      });
}

void ParameterService::ServePull(const Caller& caller,
                                 const grpc::ByteBuffer& request,
                                 const Respond& respond,
                                 const Connection& connection) {
  PassFaultPoint(FaultPoint::kPsPullReceived);
  v1::PullRequest message;
  const absl::Status decoded = DecodeMessage(request, message);
  if (!decoded.ok()) return respond(decoded, {});
  AnswerPull(caller, message,
             Timed("/lockstep.v1.ParameterService/Pull", respond), connection);
}

void ParameterService::AnswerPull(const Caller& caller,
                                  const v1::PullRequest& request,
                                  const Respond& respond,
                                  const Connection& connection) {
  const absl::StatusOr<std::shared_ptr<Shard>> shard =
      AdmitPull(caller, request);
  if (shard.ok() && (*shard)->engine().AwaitsCommit(request.step()) &&
      replies_.Postpone(**shard, request.step(),
                        [this, caller, request, respond,
                         connection](const absl::Status& status) {
                          if (!status.ok()) return respond(status, {});
                          AnswerPull(caller, request, respond, connection);
                        })) {
    return;
  }
  absl::StatusOr<grpc::ByteBuffer> response =
      shard.ok() ? HandlePull(request, connection, **shard) : shard.status();
  PassFaultPoint(FaultPoint::kPsPullAnswering);
  respond(response.status(),
          response.ok() ? *std::move(response) : grpc::ByteBuffer());
}

absl::StatusOr<std::shared_ptr<Shard>> ParameterService::AdmitPull(
    const Caller& caller, const v1::PullRequest& request) const {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(request.identity()));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  if (request.has_server()) {
    LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(request.server()));
  }
  if (request.step() < kNewestStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("step is ", request.step(),
                     "; name a step from 0 on, or -1 for the newest"));
  }
  if (request.has_rows()) {  // a read may create rows
    LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, /*slot=*/0));
  }
  return shard;
}

absl::StatusOr<grpc::ByteBuffer> ParameterService::HandlePull(
    const v1::PullRequest& request, const Connection& connection,
    Shard& shard) {
  if (request.has_rows()) {
    return HandlePullRows(request, connection.context, shard);
  }
  const int first_part = request.parts().first_part();
  const int num_parts = request.parts().num_parts();
  LOCKSTEP_ASSIGN_OR_RETURN(Shard::Values values,
                            shard.Pull(first_part, num_parts, request.step()));
  moved_(BytesOf(values.parts));
  v1::PullHeader header;
  header.set_step(values.step);
  if (request.shared()) {
    // A worker that has opened the memory of an earlier server process must not
    // use offsets into that of this one.
    LOCKSTEP_RETURN_IF_ERROR(shard.shared_gradients()
                                 .Find(request.identity().task_index(),
                                       request.identity().incarnation(), 0, 0)
                                 .status());
    for (const LentBytes& value : values.parts) {
      *header.add_values() = ToProto(value.place);
    }
    // The worker copies the values itself, and finds by the counters if it was
    // too slow, so no loan holds up an update.
    values.parts.clear();
  }
  return EncodeValues(
      header, std::move(values.parts),
      replies_.Lend(first_part, num_parts, connection.break_off));
}

absl::StatusOr<grpc::ByteBuffer> ParameterService::HandlePullRows(
    const v1::PullRequest& request, const grpc::CallbackServerContext* context,
    Shard& shard) {
  const int part = request.parts().first_part();
  LOCKSTEP_RETURN_IF_ERROR(
      shard.SizeOf(part, request.parts().num_parts()).status());
  const PartSpec& spec = shard.parts()[part];
  if (request.parts().num_parts() != 1 || request.shared() ||
      !spec.is_table()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows are of one part that is a table, and not shared; got ",
        request.parts().num_parts(), " parts from ", part, " on"));
  }
  const std::vector<int64_t> rows(request.rows().ids().begin(),
                                  request.rows().ids().end());
  const size_t row = spec.row_width * ElementSize(spec.dtype);
  size_t size = 0;
  if (__builtin_mul_overflow(rows.size(), row, &size) ||
      size > kLargestAnswer) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows.size(), " rows of ", shard.PartName(part), ", of ",
                     row, " bytes each: an answer has at most ", kLargestAnswer,
                     " bytes; lower batch_size, cut the table into more parts "
                     "(partitioner), or add servers"));
  }
  // The read creates rows.
  if (context == nullptr) LOCKSTEP_RETURN_IF_ERROR(CheckStreamed(size));
  // Checks that the step can be read before memory is allocated for the answer.
  LOCKSTEP_RETURN_IF_ERROR(
      shard.PullRows(part, {}, request.step(), {}).status());
  std::shared_ptr<void> share;
  if (context != nullptr) {
    const std::string peer = context->peer();
    share = answers_.Take(peer, size);
    if (share == nullptr) {
      return absl::UnavailableError(
          absl::StrCat(peer, " has not read its answers, of ", answers_.limit(),
                       " bytes and more; read them, and ask again"));
    }
  }
  moved_(size);
  FilledSlice filled(size, std::move(share));
  v1::PullHeader header;
  LOCKSTEP_ASSIGN_OR_RETURN(
      int64_t step,
      shard.PullRows(part, rows, request.step(), {filled.memory, size}));
  header.set_step(step);
  return EncodeTensorMessage(header, absl::MakeConstSpan(&filled.slice, 1));
}

grpc::ServerUnaryReactor* ParameterService::OpenSharedMemory(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeUnary(
      context, request, response,
      [this](const Caller& caller, const grpc::ByteBuffer& message,
             const Respond& respond) { ServeOpen(caller, message, respond); });
}

void ParameterService::ServeOpen(const Caller& caller,
                                 const grpc::ByteBuffer& request,
                                 const Respond& respond) {
  const RpcTimer timer(RpcSide::kServer,
                       "/lockstep.v1.ParameterService/OpenSharedMemory");
  PassFaultPoint(FaultPoint::kPsShareReceived);
  v1::OpenSharedMemoryRequest message;
  const absl::Status decoded = DecodeMessage(request, message);
  if (!decoded.ok()) return respond(decoded, {});
  const auto response = HandleOpen(caller, message);
  PassFaultPoint(FaultPoint::kPsShareAnswering);
  timer.Done();
  respond(response.status(),
          response.ok() ? EncodeMessage(*response) : grpc::ByteBuffer());
}

absl::StatusOr<v1::OpenSharedMemoryResponse> ParameterService::HandleOpen(
    const Caller& caller, const v1::OpenSharedMemoryRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(request.identity()));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, /*slot=*/0));
  // If this server shares no values, it does not open the worker's memory
  // either.
  LOCKSTEP_ASSIGN_OR_RETURN(PartValues::Shared shared,
                            shard->state().values().Share());
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<const PeerMemory> memory,
      OpenOffered(request.gradients(), sender.task, unshared_));
  // The chief may have expired the worker meanwhile.
  LOCKSTEP_RETURN_IF_ERROR(host_.ShareGradients(
      sender.job_id, sender.task, sender.incarnation, shard, std::move(memory),
      {request.offsets().begin(), request.offsets().end()}));
  v1::OpenSharedMemoryResponse response;
  *response.mutable_values() = ToProto(shared.values);
  *response.mutable_counters() = ToProto(shared.counters);
  return response;
}

}  // namespace lockstep::server
