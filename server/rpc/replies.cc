#include "server/rpc/replies.h"

#include <utility>

#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/rpc/status.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/sync.pb.h"
#include "server/rpc/push_codec.h"
#include "server/shard/step_progress.h"
#include "server/step/longest_waits.h"

namespace lockstep::server {
namespace {

grpc::ByteBuffer Encode(const Gate::Answer& answer) {
  v1::TakeTokenResponse response;
  response.set_step(answer.step);
  response.set_slot(answer.slot);
  response.set_block(answer.block);
  response.set_attempt(answer.attempt);
  response.set_selected_attempt(answer.selected_attempt);
  response.set_not_needed(answer.not_needed);
  switch (answer.outcome) {
    case Gate::Outcome::kToken:
      response.set_outcome(v1::TOKEN);
      break;
    case Gate::Outcome::kRedo:
      response.set_outcome(v1::TOKEN_REDO);
      break;
    case Gate::Outcome::kFinished:
      response.set_outcome(v1::TOKEN_FINISHED);
      break;
    case Gate::Outcome::kCancelled:
      // The worker asks again if it still waits.
      response.set_outcome(v1::TOKEN_WAIT);
      break;
  }
  return EncodeMessage(response);
}

void AddMembers(const std::vector<int>& workers,
                v1::TakeAndApplyResponse& response) {
  for (int worker : workers) response.add_announced_workers(worker);
}

void FillResponse(Shard& shard, const std::vector<int>& lost,
                  v1::TakeAndApplyResponse& response) {
  for (int worker : lost) response.add_lost_workers(worker);
  const StepProgress progress = ProgressOf(shard);
  response.set_waits_for(progress.waits_for);
  response.set_attempt(progress.arrivals.attempt);
  response.set_open_parts(progress.arrivals.open_parts);
  for (const auto& [worker, parts] : progress.arrivals.parts) {
    v1::PushedParts& pushed = *response.add_pushed();
    pushed.set_worker(worker);
    pushed.set_parts(parts);
  }
  AddMembers(progress.members, response);
}

}  // namespace

uint64_t Replies::FilePush(PendingPush call) {
  return pushes_.Add(std::move(call), clock_.Now());
}

uint64_t Replies::FileTokenWait(Respond call) {
  return token_waits_.Add(std::move(call), clock_.Now());
}

uint64_t Replies::FileTake(PendingTake call) {
  return takes_.Add(call, clock_.Now());
}

void Replies::FailPush(uint64_t ticket, const absl::Status& why) {
  if (auto call = pushes_.Take(ticket)) call->respond(why, {});
}

void Replies::FailTokenWait(uint64_t ticket, const absl::Status& why) {
  if (auto call = token_waits_.Take(ticket)) (*call)(why, {});
}

void Replies::FailTake(uint64_t ticket, const absl::Status& why) {
  if (auto call = takes_.Take(ticket)) call->reactor->Finish(ToGrpcStatus(why));
}

void Replies::Send(Shard& shard, ChiefCommands::Ready ready) {
  // First: the other mirrors wait for means, and workers for the mirrors.
  if (ready.answers.means_changed) on_means_changed_();
  // Workers before the chief: they compute while its answer travels.
  SendPushes(std::move(ready.answers.pushes));
  SendTokens(ready.tokens);
  postponed_.Resume(shard.engine());
  SendTakes(shard, ready.answers.takes, ready.committed_step);
}

void Replies::SendPushes(std::vector<PushAnswer> answers) {
  for (PushAnswer& answer : answers) {
    auto call = pushes_.Take(answer.ticket);
    if (!call.has_value()) continue;
    const absl::Status status = answer.status;
    grpc::ByteBuffer response;
    if (status.ok()) {
      counts_.Count(answer);
      std::shared_ptr<const void> lent;
      // Over the wire the values are sent from their own memory, which is in
      // use until the caller has read them.
      if (!answer.values.empty() && !call->shared) {
        lent = Lend(call->first_part, call->num_parts, call->break_off);
      }
      response =
          EncodePushAnswer(std::move(answer), call->shared, std::move(lent));
    }
    PassFaultPoint(FaultPoint::kPsPushAnswering);
    call->respond(status, std::move(response));
  }
}

void Replies::SendTokens(const std::vector<Gate::Answer>& answers) {
  for (const Gate::Answer& answer : answers) {
    auto call = token_waits_.Take(answer.ticket);
    if (!call.has_value()) continue;
    PassFaultPoint(FaultPoint::kPsTokenAnswering);
    (*call)(absl::OkStatus(), Encode(answer));
  }
}

void Replies::SendTakes(Shard& shard, const std::vector<TakeAnswer>& answers,
                        int64_t committed_step) {
  for (const TakeAnswer& answer : answers) {
    auto call = takes_.Take(answer.ticket);
    if (!call.has_value()) continue;
    call->response->set_prepared(answer.prepared);
    call->response->set_attempt(answer.attempt);
    call->response->set_committed_step(committed_step);
    call->response->mutable_contributors()->Assign(answer.contributors.begin(),
                                                   answer.contributors.end());
    if (answer.squares.has_value()) {
      call->response->set_squares(*answer.squares);
      if (!answer.prepared) {
        call->response->set_waits_for(shard.engine().WaitsFor());
      }
    }
    AddMembers(MembersAfterTake(shard, committed_step), *call->response);
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(ToGrpcStatus(answer.status));
  }
}

std::shared_ptr<const void> Replies::Lend(int first_part, int num_parts,
                                          const BreakOff& break_off) {
  if (break_off == nullptr) return nullptr;
  const absl::Time now = clock_.Now();
  return lent_->Add(first_part, num_parts, now, [break_off] {
    break_off(absl::UnavailableError(
        "the answer was not read in time, and the server needs the memory that "
        "it is sent from; call again"));
  });
}

void Replies::TakeBack(absl::Time now) {
  const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
  if (!shard.ok()) return;
  const std::vector<int> blocked = (*shard)->engine().BlockedParts();
  // A slow caller does no harm while no update waits for it.
  if (blocked.empty()) return;
  const absl::Duration lease = (*shard)->job().lease;
  const int calls = lent_->TakeBack(blocked, now - lease);
  if (calls == 0) return;
  spdlog::warn(
      "broke off {} calls whose answers were not read for {}: the update of {} "
      "parts waits for the memory that they are sent from",
      calls, absl::FormatDuration(lease), blocked.size());
}

void Replies::AnswerOld(absl::Time now) {
  AnswerOldTokenWaits(now);
  AnswerOldTakes(now);
  postponed_.EndOld(now - kLongestCommitWait);
}

void Replies::AnswerOldTokenWaits(absl::Time now) {
  for (uint64_t ticket : token_waits_.OlderThan(now - kLongestTokenWait)) {
    auto call = token_waits_.Take(ticket);
    if (!call.has_value()) continue;
    // Taken before Cancel(): a token that becomes ready in between finds no
    // call, and the gate gives it to the worker's next wait.
    if (auto shard = host_.shard(); shard.ok() && (*shard)->gate()) {
      (*shard)->gate()->Cancel(ticket);
    }
    (*call)(absl::OkStatus(), Encode({.outcome = Gate::Outcome::kCancelled}));
  }
}

void Replies::AnswerOldTakes(absl::Time now) {
  std::vector<uint64_t> due = takes_.OlderThan(now - kLongestTake);
  if (due.empty()) {
    due = takes_.OlderThan(absl::InfiniteFuture());
    // Not before a take waits: it is to be told.
    if (due.empty() || !HasNewsOfLost()) return;
  }
  for (uint64_t ticket : due) {
    auto call = takes_.Take(ticket);
    if (!call.has_value()) continue;
    if (auto shard = host_.shard(); shard.ok()) {
      (*shard)->engine().CancelTake(ticket);
      FillResponse(**shard, lost_.Workers(clock_.Now()), *call->response);
    }
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(grpc::Status::OK);
  }
}

bool Replies::HasNewsOfLost() {
  std::vector<int> lost = lost_.Workers(clock_.Now());
  if (!news_.MayBeNews(lost)) return false;
  const absl::StatusOr<std::shared_ptr<Shard>> shard = host_.shard();
  return shard.ok() && news_.TakeNews(**shard, std::move(lost));
}

void Replies::EndAll(const absl::Status& why) {
  // First: postponed pushes are filed in `pushes_` too.
  postponed_.EndAll(why);
  const absl::Time all = absl::InfiniteFuture();
  for (uint64_t ticket : pushes_.OlderThan(all)) FailPush(ticket, why);
  for (uint64_t ticket : token_waits_.OlderThan(all)) {
    FailTokenWait(ticket, why);
  }
  for (uint64_t ticket : takes_.OlderThan(all)) FailTake(ticket, why);
}

void Replies::LetGo(const absl::Status& why) {
  EndAll(why);
  const int calls = lent_->TakeBackAll();
  if (calls > 0) {
    spdlog::info("broke off {} calls whose answers were not read: {}", calls,
                 std::string(why.message()));
  }
  on_means_changed_();
}

}  // namespace lockstep::server
