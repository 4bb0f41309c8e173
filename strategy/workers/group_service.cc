#include "strategy/workers/group_service.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/status.h"

namespace lockstep::strategy {
namespace {

// Members are the workers of the cluster, by index.
absl::Status CheckSender(const Caller& caller, const v1::GroupMember& sender) {
  return caller.CheckSpeaksFor({TaskType::kWorker, sender.rank()});
}

// Receives one parcel.
//
// Owns: itself, until gRPC is done with the call.
class ParcelReactor final : public grpc::ServerReadReactor<v1::GiveRequest> {
 public:
  ParcelReactor(grpc::CallbackServerContext* context, GroupHandler& handler,
                ParcelCalls& calls)
      : context_(context),
        caller_(CallerOf(*context)),
        handler_(handler),
        calls_(calls) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    const absl::Status status = ok ? Take() : Complete();
    if (ok && status.ok()) return StartRead(&request_);
    Finish(ToGrpcStatus(status));
  }

  void OnDone() override {
    calls_.End(header_.sender().rank(), context_);
    delete this;
  }

 private:
  absl::Status Take() {
    if (reader_.has_value()) {
      if (!request_.has_header()) return reader_->Append(request_.payload());
      return absl::InvalidArgumentError(
          "a parcel has a second header; send it in a call of its own");
    }
    header_ = std::move(*request_.mutable_header());
    LOCKSTEP_RETURN_IF_ERROR(CheckSender(caller_, header_.sender()));
    // Before the payload: the bytes of a parcel that is refused are not held.
    LOCKSTEP_RETURN_IF_ERROR(handler_.Admit(header_));
    calls_.Begin(header_.sender().rank(), context_);
    LOCKSTEP_ASSIGN_OR_RETURN(reader_, ParcelReader::Make(header_));
    return header_.has_shared() ? handler_.Read(header_, *reader_)
                                : absl::OkStatus();
  }

  // The sender has written all, or its call was cut off: then bytes are
  // missing, or the answer is not read.
  absl::Status Complete() {
    if (!reader_.has_value()) {
      return absl::InvalidArgumentError("a parcel must begin with its header");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Leaf> leaves, reader_->Finish());
    return handler_.Arrive(header_, std::move(leaves));
  }

  grpc::CallbackServerContext* const context_;
  const Caller caller_;
  GroupHandler& handler_;
  ParcelCalls& calls_;
  v1::GiveRequest request_;
  v1::ParcelHeader header_;
  std::optional<ParcelReader> reader_;
};

}  // namespace

void ParcelCalls::Begin(int rank, grpc::CallbackServerContext* context) {
  MutexLock lock(mutex_);
  grpc::CallbackServerContext*& call = calls_[rank];
  // Under the lock: End() has not been called for it.
  if (call != nullptr) call->TryCancel();
  call = context;
}

void ParcelCalls::End(int rank, grpc::CallbackServerContext* context) {
  MutexLock lock(mutex_);
  const auto found = calls_.find(rank);
  if (found != calls_.end() && found->second == context) calls_.erase(found);
}

grpc::ServerUnaryReactor* GroupService::Greet(
    grpc::CallbackServerContext* context, const v1::GreetRequest* request,
    v1::GreetResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const v1::GroupMember& sender = request->sender();
  absl::Status status = CheckSender(CallerOf(*context), sender);
  if (status.ok()) {
    const absl::StatusOr<GreetingAnswer> answer =
        handler_.Hear({sender.rank(), sender.incarnation(), request->members(),
                       request->purpose()},
                      request->receiver(), request->leaves());
    status = answer.status();
    if (answer.ok()) {
      response->set_incarnation(answer->incarnation);
      response->set_joins(answer->joins);
      response->set_pid_space(answer->pid_space);
    }
  }
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerReadReactor<v1::GiveRequest>* GroupService::Give(
    grpc::CallbackServerContext* context, v1::GiveResponse* /*response*/) {
  return new ParcelReactor(context, handler_, parcels_);
}

}  // namespace lockstep::strategy
