// The part of ShardControlService that closes steps.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault_points.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/shard_control_service.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(1);

void AddMembers(const std::vector<int>& workers,
                v1::TakeAndApplyResponse& response) {
  for (int worker : workers) response.add_announced_workers(worker);
}

// Fills in how far the step at hand is. Where all are members from the start,
// what tells them apart is who has pushed.
void FillProgress(Shard& shard, v1::TakeAndApplyResponse& response) {
  response.set_waits_for(shard.engine().WaitsFor());
  const ShardEngine::Arrivals arrivals = shard.engine().arrivals();
  response.set_attempt(arrivals.attempt);
  response.set_open_parts(arrivals.open_parts);
  std::vector<int> pushed_all;
  for (const auto& [worker, parts] : arrivals.parts) {
    v1::PushedParts& pushed = *response.add_pushed();
    pushed.set_worker(worker);
    pushed.set_parts(parts);
    if (parts == arrivals.open_parts) pushed_all.push_back(worker);
  }
  if (shard.gate() == nullptr) return;
  AddMembers(shard.everybody_counts() ? pushed_all : shard.gate()->Members(),
             response);
}

}  // namespace

grpc::ServerUnaryReactor* ShardControlService::TakeAndApply(
    grpc::CallbackServerContext* context,
    const v1::TakeAndApplyRequest* request,
    v1::TakeAndApplyResponse* response) {
  PassFaultPoint(FaultPoint::kPsTakeReceived);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const uint64_t ticket = takes_.Add({reactor, response}, clock_.Now());
  const absl::Status status = HandleTake(*request, ticket);
  if (!status.ok()) {
    if (auto call = takes_.Take(ticket)) {
      call->reactor->Finish(ToGrpcStatus(status));
    }
  }
  return reactor;
}

absl::Status ShardControlService::HandleTake(
    const v1::TakeAndApplyRequest& request, uint64_t ticket) {
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(epoch_mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(shard, CheckedShard(request.chief()));
    shard->Grant(request.commit_until());
  }
  while (true) {
    const int64_t step = shard->engine().step();
    if (shard->gate() != nullptr && step > request.step() &&
        step <= request.commit_until()) {
      FinishTakes(*shard, {{ticket, true, 0, absl::OkStatus()}}, step);
      return absl::OkStatus();
    }
    Finish(*shard,
           shard->engine().StartAttempt(request.step(), request.attempt()));
    absl::StatusOr<ShardAnswers> answers =
        shard->engine().Take(ticket, request.step());
    if (answers.ok()) {
      Finish(*shard, *std::move(answers));
      return absl::OkStatus();
    }
    // Unless a push has had a granted step committed meanwhile.
    if (shard->engine().step() == step) return answers.status();
  }
}

absl::StatusOr<std::vector<StepGate::Answer>> ShardControlService::CommitStep(
    Shard& shard, int64_t step, int64_t attempt) {
  LOCKSTEP_RETURN_IF_ERROR(shard.engine().CheckCommit(step, attempt));
  std::vector<StepGate::Answer> tokens;
  // The gate refuses an attempt that has been given up, so it goes first; its
  // tokens go out after the values have been committed.
  if (shard.gate() != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(tokens, shard.gate()->Commit(step, attempt));
    PassFaultPoint(FaultPoint::kPsCommitHalfDone);
  }
  LOCKSTEP_RETURN_IF_ERROR(shard.engine().Commit(step, attempt).status());
  return tokens;
}

absl::Status ShardControlService::HandleCommit(const v1::CommitRequest& request,
                                               v1::CommitResponse& response) {
  std::vector<StepGate::Answer> tokens;
  std::shared_ptr<Shard> shard;
  {
    MutexLock lock(epoch_mutex_);
    LOCKSTEP_ASSIGN_OR_RETURN(shard, CheckedShard(request.chief()));
    if (shard->gate() != nullptr) {
      for (int worker : shard->gate()->Members()) response.add_workers(worker);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(
        tokens, CommitStep(*shard, request.step(), request.attempt()));
  }
  sync_.Finish(tokens);
  response.set_global_step(shard->engine().step());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ShardControlService::Commit(
    grpc::CallbackServerContext* context, const v1::CommitRequest* request,
    v1::CommitResponse* response) {
  PassFaultPoint(FaultPoint::kPsCommitReceived);
  const absl::Status status = HandleCommit(*request, *response);
  PassFaultPoint(FaultPoint::kPsCommitAnswering);
  return FinishUnary(context, status);
}

void ShardControlService::Finish(Shard& shard, ShardAnswers answers) {
  int64_t committed_step = 0;
  std::vector<StepGate::Answer> tokens;
  if (answers.prepared.has_value()) {
    const int64_t step = answers.prepared->step + 1;
    MutexLock lock(epoch_mutex_);
    if (shard.MayCommit(step)) {
      auto committed = CommitStep(shard, step, answers.prepared->attempt);
      // Otherwise the chief's own commit will show what is wrong.
      if (committed.ok()) {
        tokens = *std::move(committed);
        committed_step = step;
      }
    }
  }
  parameters_.Finish(std::move(answers.pushes));
  sync_.Finish(tokens);
  FinishTakes(shard, answers.takes, committed_step);
}

void ShardControlService::FinishTakes(Shard& shard,
                                      const std::vector<TakeAnswer>& answers,
                                      int64_t committed_step) {
  for (const TakeAnswer& answer : answers) {
    auto call = takes_.Take(answer.ticket);
    if (!call.has_value()) continue;
    call->response->set_prepared(answer.prepared);
    call->response->set_attempt(answer.attempt);
    call->response->set_committed_step(committed_step);
    if (shard.gate() != nullptr && committed_step == 0) {
      AddMembers(shard.gate()->Members(), *call->response);
    }
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(ToGrpcStatus(answer.status));
  }
}

void ShardControlService::AnswerOld(absl::Time now) {
  for (uint64_t ticket : takes_.OlderThan(now - kLongestWait)) {
    auto call = takes_.Take(ticket);
    if (!call.has_value()) continue;
    if (auto shard = host_.shard(); shard.ok()) {
      (*shard)->engine().CancelTake(ticket);
      FillProgress(**shard, *call->response);
    }
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(grpc::Status::OK);
  }
}

}  // namespace lockstep
