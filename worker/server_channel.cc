#include "worker/server_channel.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"
#include "grpcpp/support/stub_options.h"

namespace lockstep {

struct ServerChannel::InFlight {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer response;
  Callback callback;
};

ServerChannel::ServerChannel(const std::string& address, int connections) {
  for (int i = 0; i < connections; ++i) {
    stubs_.push_back(
        std::make_unique<grpc::GenericStub>(MakeChannel(address, i)));
  }
}

ServerChannel::~ServerChannel() {
  Cancel();
  MutexLock lock(mutex_);
  while (!in_flight_.empty()) idle_.Wait(mutex_);
}

void ServerChannel::Call(const std::string& method,
                         const grpc::ByteBuffer& request,
                         absl::Duration deadline, Callback callback) {
  auto owned = std::make_unique<InFlight>();
  InFlight* call = owned.get();
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  call->request = request;
  call->callback = std::move(callback);
  grpc::GenericStub* stub = nullptr;
  {
    MutexLock lock(mutex_);
    in_flight_.emplace(call, std::move(owned));
    stub = stubs_[next_stub_++ % stubs_.size()].get();
    if (cancelled_) call->context.TryCancel();
  }
  stub->UnaryCall(&call->context, method, grpc::StubOptions(), &call->request,
                  &call->response, [this, call](const grpc::Status& status) {
                    Done(call, status);
                  });
}

// The call ends before the channel may: its context shares the gRPC channel,
// and gRPC crashes when a channel ends in the thread that runs callbacks.
void ServerChannel::Done(InFlight* call, const grpc::Status& status) {
  call->callback(FromGrpcStatus(status), std::move(call->response));
  call->callback = nullptr;
  MutexLock lock(mutex_);
  in_flight_.erase(call);
  idle_.SignalAll();
}

void ServerChannel::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  for (const auto& [call, owned] : in_flight_) call->context.TryCancel();
}

}  // namespace lockstep
