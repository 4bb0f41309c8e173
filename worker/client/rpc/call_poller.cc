#include "worker/client/rpc/call_poller.h"

#include <chrono>
#include <utility>

#include "common/base/clock.h"
#include "common/rpc/deadline.h"
#include "common/rpc/poller_limit.h"
#include "grpcpp/alarm.h"

namespace lockstep::worker {
namespace {

// The time for which no thread polls after a follower has left. In a loop of
// short steps the follower returns within it, and waking a thread in between
// would cost more than the pause.
constexpr std::chrono::milliseconds kGrace(1);

int NumThreads(int asked) {
  if (asked > 0) return asked;
  return GrpcPollers() == 2 ? 1 : GrpcPollers();
}

}  // namespace

// An event that ends a wait for events and then calls another one.
class CallPoller::Wake final : public Event {
 public:
  explicit Wake(grpc::CompletionQueue& queue, Event* then = nullptr)
      : then_(then) {
    // An alarm whose time has passed puts an event into the queue at once.
    alarm_.Set(&queue, std::chrono::system_clock::time_point(), this);
  }
  void Happened(bool /*ok*/) override {
    if (then_ != nullptr) then_->Happened(true);
    delete this;
  }

 private:
  Event* const then_;
  grpc::Alarm alarm_;
};

// A thread in RunUntil().
class CallPoller::Follower {
 public:
  explicit Follower(CallPoller& poller) : poller_(poller) {
    MutexLock lock(poller_.mutex_);
    poller_.follower_ = true;
  }
  ~Follower() {
    MutexLock lock(poller_.mutex_);
    poller_.follower_ = false;
    ++poller_.visits_;
    // Only then: a poller thread that waits for kGrace finds the new visit by
    // itself.
    if (poller_.asleep_) poller_.changed_.SignalAll();
    // Events of BeforeWaiting() that this thread leaves undone must not wait
    // for the next answer: wake a thread that polls already.
    if (poller_.serving_ && !poller_.before_waiting_.empty()) {
      new Wake(poller_.queue_);
    }
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Serves an event, or waits until another thread has.
  void ServeOrWait(absl::Time deadline) {
    if (poller_.num_threads_ > 1) return Wait(deadline);
    poller_.RunWaiting(/*serves=*/false);
    void* event = nullptr;
    bool ok = false;
    if (poller_.queue_.AsyncNext(&event, &ok,
                                 DeadlineIn(deadline - Clock::Real().Now())) ==
        grpc::CompletionQueue::GOT_EVENT) {
      static_cast<Event*>(event)->Happened(ok);
    }
  }

 private:
  void Wait(absl::Time deadline) {
    MutexLock lock(poller_.mutex_);
    // Events that ended between the caller's done() and this lock would
    // otherwise be missed.
    if (std::exchange(seen_, poller_.events_) != poller_.events_) return;
    const absl::Duration left = deadline - Clock::Real().Now();
    if (left == absl::InfiniteDuration()) {
      poller_.changed_.Wait(poller_.mutex_);
    } else {
      poller_.changed_.WaitFor(poller_.mutex_, absl::ToChronoNanoseconds(left));
    }
  }

  CallPoller& poller_;
  int64_t seen_ = -1;  // of the events
};

CallPoller::CallPoller(int threads) : num_threads_(NumThreads(threads)) {
  for (int i = 0; i < num_threads_; ++i) {
    threads_.emplace_back([this] { Serve(); });
  }
}

CallPoller::~CallPoller() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  // Next() returns false once all events have been served, which ends Serve().
  queue_.Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

void CallPoller::Soon(Event* event) {
  // Deletes itself when it has happened.
  new Wake(queue_, event);
  ServeAlone();
}

void CallPoller::ServeAlone() {
  MutexLock lock(mutex_);
  // Pretends that the last visit is old, which ends the grace at once.
  seen_ = visits_;
  changed_.SignalAll();
}

void CallPoller::BeforeWaiting(Event* event) {
  MutexLock lock(mutex_);
  before_waiting_.push_back(event);
}

void CallPoller::RunWaiting(bool serves) {
  while (true) {
    std::vector<Event*> events;
    {
      MutexLock lock(mutex_);
      // An event may add another one, hence the loop; `serving_` changes under
      // the lock that proves the list empty, so no event is left behind.
      if (before_waiting_.empty()) {
        serving_ = serving_ || serves;
        return;
      }
      events.swap(before_waiting_);
    }
    for (Event* event : events) event->Happened(true);
  }
}

void CallPoller::RunUntil(absl::FunctionRef<bool()> done, absl::Time deadline) {
  if (done()) return;
  Follower follower(*this);
  while (!done() && Clock::Real().Now() < deadline)
    follower.ServeOrWait(deadline);
}

void CallPoller::Serve() {
  void* event = nullptr;
  bool ok = false;
  LetFollowerServe();
  RunWaiting(/*serves=*/true);
  while (queue_.Next(&event, &ok)) {
    static_cast<Event*>(event)->Happened(ok);
    WakeFollower();
    LetFollowerServe();
    RunWaiting(/*serves=*/true);
  }
}

void CallPoller::LetFollowerServe() {
  if (num_threads_ > 1) return;
  MutexLock lock(mutex_);
  while (!stopping_ && (follower_ || visits_ != seen_)) {
    // No new visit since the last look, so the follower stays in RunUntil():
    // sleep until it leaves. Otherwise wait for kGrace and look again.
    const bool stays = visits_ == seen_;
    seen_ = visits_;
    if (stays) {
      asleep_ = true;
      changed_.Wait(mutex_);
      asleep_ = false;
    } else {
      changed_.WaitFor(mutex_, kGrace);
    }
  }
}

void CallPoller::WakeFollower() {
  MutexLock lock(mutex_);
  ++events_;
  serving_ = false;
  if (!follower_) return;
  if (num_threads_ > 1) {
    changed_.SignalAll();
  } else {
    // This thread does not poll while there is a follower, so the follower
    // takes the event.
    new Wake(queue_);
  }
}

}  // namespace lockstep::worker
