// The part of ShardControlService that closes steps.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/rpc/shard_control_service.h"

namespace lockstep {
namespace {

constexpr absl::Duration kLongestWait = absl::Seconds(1);

void AddMembers(const std::vector<int>& workers,
                v1::TakeAndApplyResponse& response) {
  for (int worker : workers) response.add_announced_workers(worker);
}

// Fills in how far the step at hand is. Where all are members from the start,
// what tells them apart is who has pushed.
void FillArrivals(Shard& shard, v1::TakeAndApplyResponse& response) {
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
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      StepControl::Ready ready,
      control_.Take(chief, ticket, request.step(), request.commit_until(),
                    request.attempt()));
  Send(std::move(ready));
  return absl::OkStatus();
}

absl::Status ShardControlService::HandleCommit(const v1::CommitRequest& request,
                                               v1::CommitResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(const StepControl::Chief chief,
                            ToChief(request.chief()));
  std::vector<std::vector<int>> contributors;
  for (const v1::Workers& set : request.contributors()) {
    contributors.emplace_back(set.workers().begin(), set.workers().end());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      StepControl::Committed committed,
      control_.Commit(chief, request.step(), request.attempt(), contributors));
  for (int worker : committed.members) response.add_workers(worker);
  response.set_global_step(committed.global_step);
  response.set_redone_attempt(committed.redone_attempt);
  Send(std::move(committed.ready));
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
  Send(shard, control_.Settle(shard, std::move(answers)));
}

void ShardControlService::Send(Shard& shard, StepControl::Ready ready) {
  parameters_.Finish(std::move(ready.answers.pushes));
  sync_.Finish(ready.tokens);
  FinishTakes(shard, ready.answers.takes, ready.committed_step);
}

void ShardControlService::Send(StepControl::Ready ready) {
  if (auto shard = host_.shard(); shard.ok()) Send(**shard, std::move(ready));
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
    call->response->mutable_contributors()->Assign(answer.contributors.begin(),
                                                   answer.contributors.end());
    if (shard.gate() != nullptr && committed_step == 0) {
      AddMembers(shard.gate()->Members(), *call->response);
    }
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(ToGrpcStatus(answer.status));
  }
}

void ShardControlService::AnswerOld(absl::Time now) {
  long_calls_.AnswerOld(now - kLongestWait);
  for (uint64_t ticket : takes_.OlderThan(now - kLongestWait)) {
    auto call = takes_.Take(ticket);
    if (!call.has_value()) continue;
    if (auto shard = host_.shard(); shard.ok()) {
      (*shard)->engine().CancelTake(ticket);
      FillArrivals(**shard, *call->response);
    }
    PassFaultPoint(FaultPoint::kPsTakeAnswering);
    call->reactor->Finish(grpc::Status::OK);
  }
}

}  // namespace lockstep
