#include "server/parameter_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/grpc_tensor_codec.h"
#include "common/status_macros.h"
#include "common/wire_codec.h"
#include "server/push_codec.h"

namespace lockstep {
grpc::ServerUnaryReactor* ParameterService::Push(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const uint64_t ticket = pushes_.Add({reactor, response}, clock_.Now());
  const absl::Status status = HandlePush(*request, ticket);
  if (!status.ok()) {
    if (auto call = pushes_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(status));
    }
  }
  return reactor;
}

absl::Status ParameterService::HandlePush(const grpc::ByteBuffer& request,
                                          uint64_t ticket) {
  v1::PushHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(request, header, payload));
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(header.identity()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(shard->CheckWorker(sender.task, header.slot()));
  LOCKSTEP_ASSIGN_OR_RETURN(lockstep::Push push,
                            ToPush(header, payload, *shard));
  LOCKSTEP_ASSIGN_OR_RETURN(ShardAnswers answers,
                            shard->engine().AddPush(ticket, std::move(push)));
  ready_(*shard, std::move(answers));
  return absl::OkStatus();
}

void ParameterService::Finish(std::vector<PushAnswer> answers) {
  for (PushAnswer& answer : answers) {
    auto call = pushes_.Take(answer.ticket);
    if (!call.has_value()) continue;
    const absl::Status status = answer.status;
    if (status.ok()) *call->response = EncodePushAnswer(std::move(answer));
    call->reactor->Finish(ToGrpcStatus(status));
  }
}

void ParameterService::CancelAll(const absl::Status& why) {
  for (uint64_t ticket : pushes_.OlderThan(absl::InfiniteFuture())) {
    if (auto call = pushes_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(why));
    }
  }
}

grpc::ServerUnaryReactor* ParameterService::Pull(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(HandlePull(*request, *response)));
  return reactor;
}

absl::Status ParameterService::HandlePull(const grpc::ByteBuffer& request,
                                          grpc::ByteBuffer& response) {
  v1::PullRequest message;
  LOCKSTEP_RETURN_IF_ERROR(DecodeMessage(request, message));
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(message.identity()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::shared_ptr<Shard> shard,
      host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Shard::Values values,
      shard->Pull(message.parts().first_part(), message.parts().num_parts(),
                  message.step()));
  v1::PullHeader header;
  header.set_step(values.step);
  response = EncodeValues(header, std::move(values.parts));
  return absl::OkStatus();
}

}  // namespace lockstep
