#include "chief/servers/shard_control_client.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/servers/call_deadline.h"
#include "chief/servers/shard_setup_codec.h"
#include "chief/servers/step_answers_codec.h"
#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/wire/epoch_bounds.h"
#include "common/wire/tensor_message.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "grpcpp/impl/codegen/rpc_method.h"

namespace lockstep::chief {
namespace {

// The time that a setup call waits for a server that is not up. A slower one
// must register with the chief first, which cannot happen during this call.
constexpr absl::Duration kPatience = absl::Seconds(1);

void Prepare(grpc::ClientContext& context, absl::Duration deadline) {
  context.set_deadline(DeadlineIn(deadline));
}

// Repeats a setup call while the server is not up, or has not yet read the
// chief's answer to its registration.
absl::Status CallUntilUp(
    absl::Duration limit,
    const std::function<grpc::Status(grpc::ClientContext*)>& call) {
  const absl::Time began = Clock::Real().Now();
  absl::Duration pause = Backoff::kFirstPause;
  while (true) {
    grpc::ClientContext context;
    Prepare(context, limit);
    const absl::Status status = FromServerStatus(call(&context));
    if (!absl::IsUnavailable(status) ||
        Clock::Real().Now() - began >= kPatience) {
      return ExplainUnserved(status, context.peer());
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, Backoff::kLongestPause);
  }
}

v1::TensorSelector SelectorOf(const ElementRange& range) {
  v1::TensorSelector selector;
  selector.mutable_parts()->set_first_part(range.part);
  selector.mutable_parts()->set_num_parts(1);
  selector.set_tensor(range.tensor);
  selector.set_first_element(range.first);
  selector.set_num_elements(range.count);
  return selector;
}

ShardCalls::Working WorkingFrom(const v1::Working& working) {
  return {working.done_bytes(), working.total_bytes()};
}

}  // namespace

template <typename Request, typename Response>
struct ShardControlClient::StepCall final : InFlight {
  using InFlight::InFlight;
  Request request;
  Response response;
  std::function<void(absl::Status, const Response&)> callback;
};

ShardControlClient::ShardControlClient(const std::string& address,
                                       const Sender& chief)
    : chief_(chief),
      channel_(MakeChannel(address)),
      stub_(v1::ShardControlService::NewStub(channel_)) {}

ShardControlClient::~ShardControlClient() { Shutdown(); }

void ShardControlClient::Shutdown() {
  MutexLock lock(mutex_);
  shut_down_ = true;
  for (const auto& [call, owned] : in_flight_) call->context.TryCancel();
  while (!in_flight_.empty()) idle_.Wait(mutex_);  // Done() removes calls
}

template <typename Call>
Call* ShardControlClient::Keep(std::unique_ptr<Call> call) {
  Call* kept = call.get();
  Prepare(kept->context, kCallDeadline);
  MutexLock lock(mutex_);
  in_flight_.emplace(kept, std::move(call));
  if (shut_down_) kept->context.TryCancel();  // then it ends at once
  return kept;
}

// The call must be destroyed before the channel: gRPC crashes if a channel ends
// in the thread that runs callbacks.
template <typename Call>
void ShardControlClient::Done(Call* call, const grpc::Status& status) {
  call->timer.Done();
  call->callback(FromServerStatus(status, is_shut_down()), call->response);
  call->callback = nullptr;  // frees its captures, before the lock
  MutexLock lock(mutex_);
  in_flight_.erase(call);
  idle_.SignalAll();
}

v1::ChiefIdentity ShardControlClient::Chief() const {
  v1::ChiefIdentity identity;
  *identity.mutable_identity() = ToProto(chief_);
  identity.set_epoch(epoch_);
  return identity;
}

absl::StatusOr<uint64_t> ShardControlClient::TakeEpoch(uint64_t newer_than) {
  v1::TakeEpochRequest request;
  v1::TakeEpochResponse response;
  *request.mutable_chief() = Chief();
  request.mutable_chief()->set_epoch(0);
  request.set_newer_than(newer_than);
  PassFaultPoint(FaultPoint::kChiefEpochSend);
  LOCKSTEP_RETURN_IF_ERROR(
      CallUntilUp(kCallDeadline, [&](grpc::ClientContext* context) {
        return stub_->TakeEpoch(context, request, &response);
      }));
  PassFaultPoint(FaultPoint::kChiefEpochAnswered);
  if (response.epoch() <= newer_than || response.epoch() > kLargestEpoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        "TakeEpoch was answered with epoch ", response.epoch(),
        "; it must be above ", newer_than, " and at most ", kLargestEpoch,
        ": check that the address is a ps_server's of this version"));
  }
  return response.epoch();
}

absl::StatusOr<ShardControlClient::Created> ShardControlClient::CreateShard(
    const JobConfig& job, const Plan& plan, int server, State state) {
  v1::CreateShardRequest request = ToCreateRequest(job, plan, server, state);
  v1::CreateShardResponse response;
  *request.mutable_chief() = Chief();
  request.set_asks_again(true);  // the caller repeats the call
  PassFaultPoint(FaultPoint::kChiefCreateSend);
  LOCKSTEP_RETURN_IF_ERROR(
      CallUntilUp(kCallDeadline, [&](grpc::ClientContext* context) {
        return stub_->CreateShard(context, request, &response);
      }));
  if (response.has_working()) return Created{WorkingFrom(response.working())};
  PassFaultPoint(FaultPoint::kChiefCreateAnswered);
  return AnswerFrom(response, plan.variables.size(),
                    /*takes_part=*/request.parts_size() > 0);
}

absl::Status ShardControlClient::CallRaw(const std::string& method,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer& response) {
  grpc::ClientContext context;
  Prepare(context, kCallDeadline);
  const std::string name =
      absl::StrCat("/lockstep.v1.ShardControlService/", method);
  const grpc::internal::RpcMethod rpc(name.c_str(),
                                      grpc::internal::RpcMethod::NORMAL_RPC);
  return FromServerStatus(
      grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
          channel_.get(), rpc, &context, request, &response));
}

absl::Status ShardControlClient::WriteParts(const ElementRange& range,
                                            absl::Span<const char> bytes) {
  v1::WritePartsHeader header;
  *header.mutable_selector() = SelectorOf(range);
  return Write(header, bytes);
}

absl::Status ShardControlClient::WriteRows(int part, int tensor,
                                           absl::Span<const int64_t> keys,
                                           absl::Span<const char> bytes) {
  v1::WritePartsHeader header;
  *header.mutable_selector() = SelectorOf(ElementRange{part, tensor});
  header.mutable_keys()->Assign(keys.begin(), keys.end());
  return Write(header, bytes);
}

absl::Status ShardControlClient::Write(const v1::WritePartsHeader& what,
                                       absl::Span<const char> bytes) {
  v1::WritePartsHeader header = what;
  *header.mutable_chief() = Chief();
  const grpc::Slice payload = UnownedSlice(bytes.data(), bytes.size());
  grpc::ByteBuffer response;
  PassFaultPoint(FaultPoint::kChiefWriteSend);
  LOCKSTEP_RETURN_IF_ERROR(CallRaw(
      "WriteParts",
      EncodeTensorMessage(header, absl::MakeConstSpan(&payload, 1)), response));
  PassFaultPoint(FaultPoint::kChiefWriteAnswered);
  return absl::OkStatus();
}

absl::Status ShardControlClient::Activate(const Opening& opening) {
  v1::ActivateRequest request = ToActivateRequest(opening);
  v1::ActivateResponse response;
  *request.mutable_chief() = Chief();
  PassFaultPoint(FaultPoint::kChiefActivateSend);
  LOCKSTEP_RETURN_IF_ERROR(
      CallUntilUp(kCallDeadline, [&](grpc::ClientContext* context) {
        return stub_->Activate(context, request, &response);
      }));
  PassFaultPoint(FaultPoint::kChiefActivateAnswered);
  return absl::OkStatus();
}

void ShardControlClient::TakeAndApply(int64_t step, int64_t commit_until,
                                      int64_t attempt,
                                      const std::optional<MeanNorm>& norm,
                                      TakeCallback callback) {
  auto owned = std::make_unique<
      StepCall<v1::TakeAndApplyRequest, v1::TakeAndApplyResponse>>(
      "TakeAndApply");
  *owned->request.mutable_chief() = Chief();
  owned->request.set_step(step);
  owned->request.set_commit_until(commit_until);
  owned->request.set_attempt(attempt);
  if (norm.has_value()) {
    owned->request.mutable_norm()->set_attempt(norm->attempt);
    owned->request.mutable_norm()->set_norm(norm->norm);
  }
  owned->callback = [callback = std::move(callback)](
                        absl::Status status,
                        const v1::TakeAndApplyResponse& response) {
    callback(std::move(status), AnswerFrom(response));
  };
  auto* call = Keep(std::move(owned));
  PassFaultPoint(FaultPoint::kChiefTakeSend);
  stub_->async()->TakeAndApply(&call->context, &call->request, &call->response,
                               [this, call](const grpc::Status& status) {
                                 PassFaultPoint(FaultPoint::kChiefTakeAnswered);
                                 Done(call, status);
                               });
}

void ShardControlClient::Commit(
    int64_t step, int64_t attempt,
    const std::vector<std::vector<int>>& contributors,
    CommitCallback callback) {
  auto owned =
      std::make_unique<StepCall<v1::CommitRequest, v1::CommitResponse>>(
          "Commit");
  *owned->request.mutable_chief() = Chief();
  owned->request.set_step(step);
  owned->request.set_attempt(attempt);
  for (const std::vector<int>& set : contributors) {
    if (set.empty()) continue;
    owned->request.add_contributors()->mutable_workers()->Assign(set.begin(),
                                                                 set.end());
  }
  owned->callback = [callback = std::move(callback)](
                        absl::Status status,
                        const v1::CommitResponse& response) {
    callback(std::move(status), response.redone_attempt());
  };
  auto* call = Keep(std::move(owned));
  PassFaultPoint(FaultPoint::kChiefCommitSend);
  stub_->async()->Commit(&call->context, &call->request, &call->response,
                         [this, call](const grpc::Status& status) {
                           PassFaultPoint(FaultPoint::kChiefCommitAnswered);
                           Done(call, status);
                         });
}

absl::Status ShardControlClient::CommitAndWait(int64_t step, int64_t attempt) {
  grpc::ClientContext context;
  Prepare(context, kCallDeadline);
  v1::CommitRequest request;
  v1::CommitResponse response;
  *request.mutable_chief() = Chief();
  request.set_step(step);
  request.set_attempt(attempt);
  return FromServerStatus(stub_->Commit(&context, request, &response));
}

v1::ExpireWorkerRequest ShardControlClient::ExpireRequest(
    int worker, uint64_t incarnation, const std::string& reason, int64_t step,
    int64_t attempt) const {
  v1::ExpireWorkerRequest request;
  *request.mutable_chief() = Chief();
  request.set_worker(worker);
  request.set_incarnation(incarnation);
  request.set_reason(reason);
  request.set_step(step);
  request.set_attempt(attempt);
  return request;
}

absl::StatusOr<ShardControlClient::Expired> ShardControlClient::ExpireWorker(
    int worker, uint64_t incarnation, const std::string& reason, int64_t step,
    int64_t attempt) {
  grpc::ClientContext context;
  Prepare(context, kCallDeadline);
  const v1::ExpireWorkerRequest request =
      ExpireRequest(worker, incarnation, reason, step, attempt);
  v1::ExpireWorkerResponse response;
  PassFaultPoint(FaultPoint::kChiefExpireSend);
  LOCKSTEP_RETURN_IF_ERROR(
      FromServerStatus(stub_->ExpireWorker(&context, request, &response)));
  PassFaultPoint(FaultPoint::kChiefExpireAnswered);
  return AnswerFrom(response);
}

void ShardControlClient::StartExpireWorker(int worker, uint64_t incarnation,
                                           const std::string& reason,
                                           bool input_ended, int64_t step,
                                           int64_t attempt,
                                           ExpireCallback callback) {
  auto owned = std::make_unique<
      StepCall<v1::ExpireWorkerRequest, v1::ExpireWorkerResponse>>(
      "ExpireWorker");
  owned->request = ExpireRequest(worker, incarnation, reason, step, attempt);
  owned->request.set_input_ended(input_ended);
  owned->callback = [callback = std::move(callback)](
                        const absl::Status& status,
                        const v1::ExpireWorkerResponse& response) {
    if (!status.ok()) return callback(status);
    PassFaultPoint(FaultPoint::kChiefExpireAnswered);
    callback(AnswerFrom(response));
  };
  auto* call = Keep(std::move(owned));
  PassFaultPoint(FaultPoint::kChiefExpireSend);
  stub_->async()->ExpireWorker(
      &call->context, &call->request, &call->response,
      [this, call](const grpc::Status& status) { Done(call, status); });
}

void ShardControlClient::StartReplaceMember(int worker, int64_t step,
                                            int64_t attempt,
                                            const std::string& reason,
                                            ReplaceCallback callback) {
  auto owned = std::make_unique<
      StepCall<v1::ReplaceMemberRequest, v1::ReplaceMemberResponse>>(
      "ReplaceMember");
  *owned->request.mutable_chief() = Chief();
  owned->request.set_worker(worker);
  owned->request.set_step(step);
  owned->request.set_attempt(attempt);
  owned->request.set_reason(reason);
  owned->callback = [callback = std::move(callback)](
                        const absl::Status& status,
                        const v1::ReplaceMemberResponse& response) {
    if (!status.ok()) return callback(status);
    PassFaultPoint(FaultPoint::kChiefReplaceAnswered);
    Replaced replaced{std::nullopt, response.step(), response.attempt()};
    if (response.replaced()) replaced.by = response.by();
    callback(replaced);
  };
  auto* call = Keep(std::move(owned));
  PassFaultPoint(FaultPoint::kChiefReplaceSend);
  stub_->async()->ReplaceMember(
      &call->context, &call->request, &call->response,
      [this, call](const grpc::Status& status) { Done(call, status); });
}

void ShardControlClient::StartCloseTokens(CloseCallback callback) {
  auto owned = std::make_unique<
      StepCall<v1::CloseTokensRequest, v1::CloseTokensResponse>>("CloseTokens");
  *owned->request.mutable_chief() = Chief();
  owned->callback = [callback = std::move(callback)](
                        const absl::Status& status,
                        const v1::CloseTokensResponse&) {
    PassFaultPoint(FaultPoint::kChiefCloseAnswered);
    callback(status);
  };
  auto* call = Keep(std::move(owned));
  PassFaultPoint(FaultPoint::kChiefCloseSend);
  stub_->async()->CloseTokens(
      &call->context, &call->request, &call->response,
      [this, call](const grpc::Status& status) { Done(call, status); });
}

absl::StatusOr<ShardSnapshot> ShardControlClient::BeginSnapshot(int64_t step) {
  v1::BeginSnapshotRequest request;
  v1::BeginSnapshotResponse response;
  *request.mutable_chief() = Chief();
  request.set_asks_again(true);
  request.set_global_step(step);
  PassFaultPoint(FaultPoint::kChiefSnapshotSend);
  int64_t done_bytes = -1;
  absl::Time moved = Clock::Real().Now();
  while (true) {
    grpc::ClientContext context;
    Prepare(context, kCallDeadline);
    response.Clear();
    LOCKSTEP_RETURN_IF_ERROR(
        FromServerStatus(stub_->BeginSnapshot(&context, request, &response)));
    if (!response.has_working()) break;
    if (response.working().done_bytes() > done_bytes) {
      done_bytes = response.working().done_bytes();
      moved = Clock::Real().Now();
    } else if (Clock::Real().Now() - moved > ShardCalls::kLongestStandstill) {
      return absl::DeadlineExceededError(
          absl::StrCat("the copy of a step stands at ", done_bytes, " of ",
                       response.working().total_bytes(), " bytes for ",
                       absl::FormatDuration(ShardCalls::kLongestStandstill)));
    }
  }
  PassFaultPoint(FaultPoint::kChiefSnapshotAnswered);
  snapshot_step_ = response.global_step();
  return ShardSnapshot{response.global_step(),
                       {response.scalars().begin(), response.scalars().end()},
                       {response.rows().begin(), response.rows().end()}};
}

absl::Status ShardControlClient::ReadSnapshot(const ElementRange& range,
                                              absl::Span<char> bytes) {
  return Read(SelectorOf(range), bytes);
}

absl::Status ShardControlClient::ReadKeys(int part, int64_t first,
                                          absl::Span<int64_t> keys) {
  v1::TensorSelector selector = SelectorOf(
      ElementRange{part, 0, first, static_cast<int64_t>(keys.size())});
  selector.set_keys(true);
  return Read(selector, {reinterpret_cast<char*>(keys.data()),
                         keys.size() * sizeof(int64_t)});
}

absl::Status ShardControlClient::Read(const v1::TensorSelector& selector,
                                      absl::Span<char> bytes) {
  v1::ReadSnapshotRequest request;
  *request.mutable_chief() = Chief();
  *request.mutable_selector() = selector;
  grpc::ByteBuffer response;
  PassFaultPoint(FaultPoint::kChiefReadSend);
  LOCKSTEP_RETURN_IF_ERROR(
      CallRaw("ReadSnapshot", EncodeMessage(request), response));
  PassFaultPoint(FaultPoint::kChiefReadAnswered);
  v1::ReadSnapshotHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, header, payload));
  if (header.global_step() != snapshot_step_) {
    return absl::UnavailableError(
        absl::StrCat("the snapshot of step ", snapshot_step_,
                     " was replaced by one of step ", header.global_step()));
  }
  if (payload.size != bytes.size()) {
    return absl::InternalError(absl::StrCat("ReadSnapshot answered ",
                                            payload.size, " bytes; ",
                                            bytes.size(), " were asked for"));
  }
  payload.CopyTo(bytes.data());
  return absl::OkStatus();
}

absl::Status ShardControlClient::EndSnapshot() {
  grpc::ClientContext context;
  Prepare(context, kCallDeadline);
  v1::EndSnapshotRequest request;
  v1::EndSnapshotResponse response;
  *request.mutable_chief() = Chief();
  PassFaultPoint(FaultPoint::kChiefReleaseSend);
  const grpc::Status status = stub_->EndSnapshot(&context, request, &response);
  PassFaultPoint(FaultPoint::kChiefReleaseAnswered);
  return FromServerStatus(status);
}

}  // namespace lockstep::chief
