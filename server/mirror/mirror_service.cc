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
namespace {

// Less than the deadline of a fetch, 10 s.
constexpr absl::Duration kLongestWait = absl::Seconds(3);

}  // namespace

grpc::ServerUnaryReactor* MirrorService::FetchMeans(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return ServeUnary(context, request, response,
                    [this](const Caller& caller, const grpc::ByteBuffer& bytes,
                           Respond respond) {
                      PassFaultPoint(FaultPoint::kPsMeansReceived);
                      absl::StatusOr<Wait> wait = Admit(caller, bytes);
                      if (!wait.ok()) return respond(wait.status(), {});
                      wait->respond = std::move(respond);
                      File(*std::move(wait));
                      // The means may have been computed before the call was
                      // filed.
                      AnswerReady();
                    });
}

absl::StatusOr<MirrorService::Wait> MirrorService::Admit(
    const Caller& caller, const grpc::ByteBuffer& request) const {
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
  Wait wait;
  LOCKSTEP_ASSIGN_OR_RETURN(
      wait.shard, host_.Admit(sender.job_id, sender.task, sender.incarnation));
  LOCKSTEP_RETURN_IF_ERROR(host_.CheckMeant(message.server()));
  wait.step = message.step();
  wait.attempt = message.attempt();
  wait.first_part = message.parts().first_part();
  wait.num_parts = message.parts().num_parts();
  wait.shared =
      !message.pid_space().empty() && message.pid_space() == OwnPidSpace();
  wait.since = clock_.Now();
  return wait;
}

void MirrorService::File(Wait wait) {
  absl::Status ended;
  {
    MutexLock lock(mutex_);
    ended = ended_;
    if (ended.ok()) return waits_.push_back(std::move(wait));
  }
  // Nothing would answer the call any more, and gRPC's shutdown waits for all
  // calls.
  wait.respond(ended, {});
}

std::optional<MirrorService::Answer> MirrorService::TryAnswer(
    Wait& wait, const Shard* current) const {
  // No gradient reaches that shard, and the call would keep its memory in use.
  if (wait.shard.get() != current) {
    return Answer{std::move(wait.respond),
                  absl::UnavailableError("the server opens its state again"),
                  {},
                  std::move(wait.shard)};
  }
  auto means = wait.shard->engine().Means(wait.step, wait.attempt,
                                          wait.first_part, wait.num_parts);
  if (!means.ok()) return Answer{std::move(wait.respond), means.status()};
  if (!means->has_value()) return std::nullopt;
  return Answer{
      std::move(wait.respond), absl::OkStatus(),
      EncodeMeans(wait.first_part, **std::move(means),
                  wait.shared ? wait.shard->state().updates().mean_files()
                              : std::nullopt)};
}

void MirrorService::AnswerReady() {
  std::list<Answer> answers;
  {
    MutexLock lock(mutex_);
    const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
    const Shard* const current = shard.ok() ? shard->get() : nullptr;
    for (auto wait = waits_.begin(); wait != waits_.end();) {
      std::optional<Answer> answer = TryAnswer(*wait, current);
      if (answer.has_value()) answers.push_back(*std::move(answer));
      wait = answer.has_value() ? waits_.erase(wait) : std::next(wait);
    }
  }
  Send(std::move(answers));
}

void MirrorService::AnswerOld(absl::Time now) {
  AnswerReady();
  std::list<Answer> answers;
  {
    MutexLock lock(mutex_);
    for (auto wait = waits_.begin(); wait != waits_.end();) {
      if (now - wait->since < kLongestWait) {
        ++wait;
        continue;
      }
      // Not kUnavailable, which the caller takes for a server that is gone.
      answers.push_back(
          {std::move(wait->respond), absl::DeadlineExceededError(absl::StrCat(
                                         "the means of step ", wait->step + 1,
                                         " are not here, which waits for ",
                                         wait->shard->engine().WaitsFor()))});
      wait = waits_.erase(wait);
    }
  }
  Send(std::move(answers));
}

void MirrorService::EndAll(const absl::Status& why) {
  std::list<Answer> answers;
  {
    MutexLock lock(mutex_);
    ended_ = why;
    for (Wait& wait : waits_) answers.push_back({std::move(wait.respond), why});
    waits_.clear();
  }
  Send(std::move(answers));
}

void MirrorService::Send(std::list<Answer> answers) {
  for (Answer& answer : answers) {
    PassFaultPoint(FaultPoint::kPsMeansAnswering);
    answer.respond(answer.status, std::move(answer.response));
  }
}

}  // namespace lockstep::server
