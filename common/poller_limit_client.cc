#include "common/poller_limit_client.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <string>

#include "common/grpc_channel.h"
#include "common/log.h"
#include "common/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kPatience(5);

}  // namespace

// Calls whose callbacks hold threads of gRPC's.
class PollerLimit::Sleepers {
 public:
  Sleepers() : stub_(MakeChannel("localhost:0")) {}

  // Puts `count` threads to sleep. False if they do not, or if no thread is
  // left that answers.
  bool Hold(int count) {
    for (int i = 0; i < count; ++i) {
      Start([this] {
        MutexLock lock(mutex_);
        ++asleep_;
        changed_.SignalAll();
        while (!let_go_) changed_.Wait(mutex_);
        --asleep_;
      });
    }
    if (!Await(&Sleepers::asleep_, count)) return false;
    Start([] {});
    return Await(&Sleepers::running_, count);
  }

  void LetGo() {
    MutexLock lock(mutex_);
    let_go_ = true;
    changed_.SignalAll();
    while (running_ > 0) changed_.Wait(mutex_);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request{&kNothing, 1};
    grpc::ByteBuffer response;
  };

  static inline const grpc::Slice kNothing{"x"};

  // Runs `body` in one of gRPC's threads.
  void Start(std::function<void()> body) {
    {
      MutexLock lock(mutex_);
      ++running_;
    }
    Call& call = calls_.emplace_back();
    call.context.TryCancel();
    stub_.UnaryCall(&call.context, "/lockstep/Nothing", grpc::StubOptions(),
                    &call.request, &call.response,
                    [this, body = std::move(body)](const grpc::Status&) {
                      body();
                      MutexLock lock(mutex_);
                      --running_;
                      changed_.SignalAll();
                    });
  }

  // False if `number` does not become `value` in time.
  bool Await(int Sleepers::*number, int value) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    MutexLock lock(mutex_);
    while (this->*number != value) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

  grpc::GenericStub stub_;
  std::deque<Call> calls_;  // where they are, they stay
  Mutex mutex_;
  CondVar changed_;
  int asleep_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // calls that have not ended
  bool let_go_ ABSL_GUARDED_BY(mutex_) = false;
};

int GrpcPollers() {
  return std::clamp<int>(sysconf(_SC_NPROCESSORS_CONF) / 2, 2, 16);
}

PollerLimit::PollerLimit(int pollers) {
  const int all = GrpcPollers();
  if (pollers == 0 || pollers >= all) return;
  sleepers_ = std::make_unique<Sleepers>();
  if (sleepers_->Hold(all - pollers)) return;
  spdlog::warn("gRPC's threads are not as expected: all {} stay awake", all);
  sleepers_->LetGo();
}

PollerLimit::~PollerLimit() {
  if (sleepers_ != nullptr) sleepers_->LetGo();
}

}  // namespace lockstep
