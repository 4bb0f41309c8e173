#include "worker/client/rpc/server_channel.h"

#include <utility>

#include "common/base/clock.h"
#include "common/metrics/durations.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"

namespace lockstep::worker {
namespace {

// Deadlines of streamed calls are 10 s, so a second late does not matter.
constexpr absl::Duration kWatchEvery = absl::Seconds(1);

}  // namespace

struct ServerChannel::InFlight final : CallPoller::Event {
  void Happened(bool /*ok*/) override { channel->Done(this); }

  ServerChannel* channel = nullptr;
  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  Callback callback;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

ServerChannel::ServerChannel(CallPoller& poller, const std::string& address,
                             int connections)
    : poller_(poller) {
  for (int i = 0; i < connections; ++i) {
    // Different indexes keep gRPC from sharing one connection.
    const std::shared_ptr<grpc::Channel> channel = MakeChannel(address, i);
    stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    if (i == 0) stream_stub_ = v1::CallStreamService::NewStub(channel);
  }
}

ServerChannel::~ServerChannel() {
  Cancel();
  // Without the lock, which the thread needs to see that it must end.
  if (watch_.joinable()) watch_.join();
  MutexLock lock(mutex_);
  while (!in_flight_.empty() || !streams_.empty()) idle_.Wait(mutex_);
}

void ServerChannel::Call(Size size, const std::string& method,
                         const grpc::ByteBuffer& request,
                         absl::Duration deadline, Callback callback) {
  const Callback timed = [timer = RpcTimer(RpcSide::kClient, method),
                          callback = std::move(callback)](
                             absl::Status status, grpc::ByteBuffer response) {
    timer.Done();
    callback(std::move(status), std::move(response));
  };
  const std::shared_ptr<CallStreamClient> stream =
      // A small call on an open stream saves the setup of an RPC; a large one
      // would hold up the small ones behind it.
      size == Size::kSmall ? Stream() : nullptr;
  if (stream != nullptr &&
      stream->Call(method, request, Clock::Real().Now() + deadline, timed)) {
    return;
  }
  CallAlone(method, request, deadline, timed);
}

void ServerChannel::CallAlone(const std::string& method,
                              const grpc::ByteBuffer& request,
                              absl::Duration deadline, Callback callback) {
  auto owned = std::make_unique<InFlight>();
  InFlight* call = owned.get();
  call->context.set_deadline(DeadlineIn(deadline));
  call->channel = this;
  call->callback = std::move(callback);
  grpc::GenericStub* stub = nullptr;
  {
    MutexLock lock(mutex_);
    in_flight_.emplace(call, std::move(owned));
    stub = stubs_[next_stub_++ % stubs_.size()].get();
    // Started nevertheless: gRPC reports the cancellation to the poller like
    // any other end, and the callback runs in a thread that polls.
    if (cancelled_) call->context.TryCancel();
  }
  call->reader =
      stub->PrepareUnaryCall(&call->context, method, request, &poller_.queue());
  call->reader->StartCall();
  call->reader->Finish(&call->response, &call->status, call);
}

// The call must end before the channel does: its context shares the gRPC
// channel, and gRPC crashes when a channel ends in the thread that runs
// callbacks.
void ServerChannel::Done(InFlight* call) {
  absl::Status status = FromServerStatus(call->status, IsCancelled());
  if (absl::IsUnimplemented(status)) {
    status = ExplainUnserved(status, call->context.peer());
  }
  call->callback(std::move(status), std::move(call->response));
  // Releases the callback's objects before the lock: they may be the last
  // owners of something that calls this channel.
  call->callback = nullptr;
  MutexLock lock(mutex_);
  in_flight_.erase(call);
  idle_.SignalAll();
}

bool ServerChannel::IsCancelled() {
  MutexLock lock(mutex_);
  return cancelled_;
}

std::shared_ptr<CallStreamClient> ServerChannel::Stream() {
  MutexLock lock(mutex_);
  if (cancelled_ || !has_streams_) return nullptr;
  if (stream_open_) return streams_.back();
  streams_.push_back(std::make_shared<CallStreamClient>());
  const std::shared_ptr<CallStreamClient> stream = streams_.back();
  stream_open_ = true;
  stream->Open(*stream_stub_, poller_,
               [this, ended = stream.get()](const absl::Status& status) {
                 StreamEnded(ended, status);
               });
  if (!watch_.joinable()) watch_ = std::thread([this] { WatchStreams(); });
  return stream;
}

void ServerChannel::StreamEnded(CallStreamClient* stream,
                                const absl::Status& status) {
  MutexLock lock(mutex_);
  // A server of an older version, or one that has given the connection all its
  // streams, as one behind a proxy that joins connections: each call is an RPC
  // of its own from now on.
  if (absl::IsUnimplemented(status) || absl::IsResourceExhausted(status)) {
    has_streams_ = false;
  }
  if (streams_.back().get() == stream) stream_open_ = false;
  std::erase_if(streams_,
                [stream](const auto& one) { return one.get() == stream; });
  idle_.SignalAll();
}

void ServerChannel::WatchStreams() {
  MutexLock lock(mutex_);
  while (!cancelled_) {
    idle_.WaitFor(mutex_, absl::ToChronoMilliseconds(kWatchEvery));
    for (const auto& stream : streams_)
      stream->CheckDeadlines(Clock::Real().Now());
  }
}

void ServerChannel::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  for (const auto& stream : streams_) stream->Cancel();
  idle_.SignalAll();
  for (const auto& [call, owned] : in_flight_) call->context.TryCancel();
}

}  // namespace lockstep::worker
