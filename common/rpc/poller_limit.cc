#include "common/rpc/poller_limit.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/rpc/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {
namespace {

// If threads do not sleep within this time, all stay awake: that costs only
// speed.
constexpr std::chrono::seconds kPatience(5);

}  // namespace

// Sleepers are calls whose callbacks occupy threads of gRPC.
class PollerLimit::Sleepers {
 public:
  // No call on this channel is ever sent, so the address does not matter.
  Sleepers() : stub_(MakeChannel("localhost:0")) {}

  // Puts `count` threads to sleep. False if they do not fall asleep, or if no
  // remaining thread answers.
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
    // Tests the remaining threads: this call ends only if one is awake.
    Start([] {});
    return Await(&Sleepers::running_, count);
  }

  // Wakes all threads and waits until they have left.
  void LetGo() {
    MutexLock lock(mutex_);
    let_go_ = true;
    changed_.SignalAll();
    while (running_ > 0) changed_.Wait(mutex_);
    let_go_ = false;
  }

  // Puts a thread to sleep as long as `goes_on` returns true; it is called now
  // and then, and by AskAgain().
  void Rest(std::function<bool()> goes_on) {
    Start([this, goes_on = std::move(goes_on)] {
      MutexLock lock(mutex_);
      ++asleep_;
      while (goes_on() && !let_go_) {
        changed_.WaitFor(mutex_,
                         absl::ToChronoNanoseconds(PollerDemand::kPeriod));
      }
      --asleep_;
    });
  }

  void AskAgain() {
    MutexLock lock(mutex_);  // between the check and the sleep
    changed_.SignalAll();
  }

  int asleep() {
    MutexLock lock(mutex_);
    return asleep_;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request{&kNothing, 1};
    grpc::ByteBuffer response;
  };

  static inline const grpc::Slice kNothing{"x"};

  // Runs `body` in a thread of gRPC.
  void Start(std::function<void()> body) {
    std::list<Call>::iterator call;
    {
      MutexLock lock(mutex_);
      ++running_;
      call = calls_.emplace(calls_.end());
    }
    // Cancelled before it starts, so the call fails at once, without a
    // connection; its callback still runs in a thread of gRPC.
    call->context.TryCancel();
    stub_.UnaryCall(&call->context, "/lockstep/Nothing", grpc::StubOptions(),
                    &call->request, &call->response,
                    [this, call, body = std::move(body)](const grpc::Status&) {
                      body();
                      End(call);
                    });
  }

  // The call must end before the channel: its context shares the channel, and
  // gRPC crashes if a channel ends in a thread that runs callbacks.
  void End(std::list<Call>::iterator call) {
    MutexLock lock(mutex_);
    calls_.erase(call);
    --running_;
    changed_.SignalAll();
  }

  // False if `number` does not reach `value` in time.
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
  Mutex mutex_;
  CondVar changed_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mutex_);  // unfinished calls
  int asleep_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // unfinished calls
  bool let_go_ ABSL_GUARDED_BY(mutex_) = false;
};

int GrpcPollers() {
  // gRPC's own formula for the number of its threads.
  return std::clamp<int>(sysconf(_SC_NPROCESSORS_CONF) / 2, 2, 16);
}

PollerLimit::PollerLimit(int pollers, const Clock& clock) : clock_(clock) {
  const int all = GrpcPollers();
  adapts_ = pollers == 0 && all == 2;
  const int awake = adapts_ ? 1 : pollers;
  if (awake == 0 || awake >= all) return;
  sleepers_ = std::make_unique<Sleepers>();
  const bool as_expected = sleepers_->Hold(all - awake);
  // With adapts_, the sleepers were only a test: Moved() decides when a thread
  // rests.
  if (as_expected && !adapts_) return;
  sleepers_->LetGo();
  if (as_expected) return;
  adapts_ = false;
  spdlog::warn("gRPC's threads are not as expected: all {} stay awake", all);
}

PollerLimit::~PollerLimit() {
  if (sleepers_ != nullptr) sleepers_->LetGo();
}

void PollerLimit::Moved(size_t bytes) {
  if (!adapts_) return;
  bool begins = false;
  {
    MutexLock lock(mutex_);
    demand_.Count(bytes, clock_.Now());
    // Nothing changes for most calls, so that a call costs one lock.
    if (rests_ == demand_.one_is_enough()) return;
    begins = !std::exchange(rests_, true);
  }
  // Outside the lock: GoesOnResting() is called with the sleepers' mutex held,
  // so the two must be locked in that order.
  if (begins) {
    sleepers_->Rest([this] { return GoesOnResting(); });
  } else {
    sleepers_->AskAgain();
  }
}

bool PollerLimit::GoesOnResting() {
  MutexLock lock(mutex_);
  demand_.PassTime(clock_.Now());
  rests_ = demand_.one_is_enough();
  return rests_;
}

int PollerLimit::asleep() const {
  return sleepers_ == nullptr ? 0 : sleepers_->asleep();
}

}  // namespace lockstep
