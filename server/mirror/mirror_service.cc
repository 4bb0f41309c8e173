#include "server/mirror/mirror_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/memory/shared_memory.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "server/mirror/means_codec.h"

namespace lockstep::server {

grpc::ServerUnaryReactor* MirrorService::FetchMeans(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeUnary(context, request, response,
                    [this](const Caller& caller, const grpc::ByteBuffer& bytes,
                           Respond respond) {
                      PassFaultPoint(FaultPoint::kPsMeansReceived);
                      Call call{std::move(respond)};
                      absl::StatusOr<MeanWaits::Wait> wait =
                          Admit(caller, bytes, call.shared);
                      if (!wait.ok()) return call.respond(wait.status(), {});
                      File(*std::move(wait), std::move(call));
                      // The means may have been computed before the call was
                      // filed.
                      AnswerReady();
                    });
}

absl::StatusOr<MeanWaits::Wait> MirrorService::Admit(
    const Caller& caller, const grpc::ByteBuffer& request, bool& shared) const {
  v1::FetchMeansRequest message;
  LOCKSTEP_RETURN_IF_ERROR(DecodeMessage(request, message));
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(message.identity()));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  // Only mirrors need means, and they are as large as the model.
  if (sender.task.type != TaskType::kPs) {
    return absl::PermissionDeniedError(
        absl::StrCat("means are for the other servers of the job, not for ",
                     sender.task.ToString()));
  }
  MeanWaits::Wait wait;
  LOCKSTEP_ASSIGN_OR_RETURN(
      wait.shard, host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(message.server()));
  wait.of = {message.step(), message.attempt()};
  wait.first_part = message.parts().first_part();
  wait.num_parts = message.parts().num_parts();
  shared = !message.pid_space().empty() && message.pid_space() == OwnPidSpace();
  wait.since = clock_.Now();
  return wait;
}

void MirrorService::File(MeanWaits::Wait wait, Call call) {
  absl::Status ended;
  {
    MutexLock lock(mutex_);
    ended = ended_;
    if (ended.ok()) {
      wait.ticket = ++tickets_;
      calls_.emplace(wait.ticket, std::move(call));
      return waits_.Add(std::move(wait));
    }
  }
  // Nothing would answer the call any more, and gRPC's shutdown waits for all
  // calls.
  call.respond(ended, {});
}

std::vector<MirrorService::Reply> MirrorService::RepliesOf(
    std::vector<MeanWaits::Answer> answers) {
  std::vector<Reply> replies;
  for (MeanWaits::Answer& answer : answers) {
    auto call = calls_.extract(answer.ticket);
    replies.push_back({std::move(call.mapped()), std::move(answer)});
  }
  return replies;
}

void MirrorService::AnswerReady() {
  std::vector<Reply> replies;
  {
    MutexLock lock(mutex_);
    const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
    replies = RepliesOf(waits_.TakeReady(shard.ok() ? shard->get() : nullptr));
  }
  Send(std::move(replies));
}

void MirrorService::AnswerOld(absl::Time now) {
  AnswerReady();
  std::vector<Reply> replies;
  {
    MutexLock lock(mutex_);
    replies = RepliesOf(waits_.TakeOld(now));
  }
  Send(std::move(replies));
}

void MirrorService::EndAll(const absl::Status& why) {
  std::vector<Reply> replies;
  {
    MutexLock lock(mutex_);
    ended_ = why;
    replies = RepliesOf(waits_.TakeAll(why));
  }
  Send(std::move(replies));
}

void MirrorService::Send(std::vector<Reply> replies) {
  for (auto& [call, answer] : replies) {
    PassFaultPoint(FaultPoint::kPsMeansAnswering);
    if (!answer.means.ok()) {
      call.respond(answer.means.status(), {});
      continue;
    }
    call.respond(
        absl::OkStatus(),
        EncodeMeans(answer.first_part, *std::move(answer.means),
                    call.shared ? answer.shard->state().updates().mean_files()
                                : std::nullopt));
  }
}

}  // namespace lockstep::server
