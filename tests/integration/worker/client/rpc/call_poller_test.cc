#include "worker/client/rpc/call_poller.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

// Happens after a while, once, and remembers where.
class Timer final : public CallPoller::Event {
 public:
  Timer(CallPoller& poller, absl::Duration delay) {
    alarm_.Set(&poller.queue(), absl::ToChronoTime(absl::Now() + delay), this);
  }
  // A thread that has seen that it happened may end it.
  void Happened(bool ok) override {
    const std::shared_ptr<std::promise<std::thread::id>> thread = thread_;
    ok_ = ok;
    happened_ = true;
    thread->set_value(std::this_thread::get_id());
  }

  void Cancel() { alarm_.Cancel(); }
  bool happened() const { return happened_; }
  bool ok() const { return ok_; }
  // Waits for it.
  std::thread::id thread() { return thread_->get_future().get(); }

 private:
  grpc::Alarm alarm_;
  const std::shared_ptr<std::promise<std::thread::id>> thread_ =
      std::make_shared<std::promise<std::thread::id>>();
  std::atomic<bool> ok_ = false;
  std::atomic<bool> happened_ = false;
};

TEST(CallPollerTest, AThreadThatWaitsServesAllEventsButTheFirst) {
  CallPoller poller(1);
  std::list<Timer> timers;
  int asked = 0;

  // The second time that it is asked, the poller's own thread stays out, if it
  // does not wait for an event already.
  poller.RunUntil([&] {
    if (++asked == 1) return false;
    for (int i = 1; timers.size() < 5; ++i) {
      timers.emplace_back(poller, absl::Milliseconds(i));
    }
    return std::all_of(timers.begin(), timers.end(),
                       [](const Timer& timer) { return timer.happened(); });
  });

  int elsewhere = 0;
  for (Timer& timer : timers) {
    elsewhere += timer.thread() != std::this_thread::get_id();
  }
  EXPECT_LE(elsewhere, 1);
}

TEST(CallPollerTest, EventsAreServedWithoutAThreadThatWaits) {
  CallPoller poller(1);
  for (int repeated = 0; repeated < 3; ++repeated) {
    Timer timer(poller, absl::Milliseconds(1));
    EXPECT_NE(timer.thread(), std::this_thread::get_id());
  }
}

TEST(CallPollerTest, EventsAreServedAgainAfterAGuestThatStayedLong) {
  CallPoller poller(1);
  Timer long_wait(poller, absl::Milliseconds(50));
  poller.RunUntil([&] { return long_wait.happened(); });

  Timer timer(poller, absl::Milliseconds(1));

  EXPECT_NE(timer.thread(), std::this_thread::get_id());
}

TEST(CallPollerTest, AWaitEndsAtItsDeadline) {
  for (int threads : {1, 2}) {
    CallPoller poller(threads);
    bool asked = false;

    poller.RunUntil(
        [&] {
          asked = true;
          return false;
        },
        absl::Now() + absl::Milliseconds(5));

    EXPECT_TRUE(asked);
  }
}

TEST(CallPollerTest, WaitThatIsDoneAlreadyReturnsAtOnce) {
  CallPoller poller(1);
  int asked = 0;

  poller.RunUntil([&] {
    ++asked;
    return true;
  });

  EXPECT_EQ(asked, 1);
}

TEST(CallPollerTest, SeveralThreadsServeAndTheGuestOnlyWaits) {
  CallPoller poller(2);
  for (int repeated = 0; repeated < 20; ++repeated) {
    Timer timer(poller, absl::Microseconds(100 * repeated));
    poller.RunUntil([&] { return timer.happened(); });
    EXPECT_NE(timer.thread(), std::this_thread::get_id());
  }
}

TEST(CallPollerTest, ShortWaitsInARowMissNoEvent) {
  CallPoller poller(1);
  for (int repeated = 0; repeated < 500; ++repeated) {
    Timer timer(poller, absl::Microseconds(repeated % 50 * 40));
    poller.RunUntil([&] { return timer.happened(); });
    EXPECT_TRUE(timer.ok());
    if (repeated % 100 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

// What is put off.
class Note final : public CallPoller::Event {
 public:
  void Happened(bool /*ok*/) override {
    happened_ = true;
    thread_.set_value(std::this_thread::get_id());
  }
  bool happened() const { return happened_; }
  // Waits for it.
  std::thread::id thread() { return thread_.get_future().get(); }

 private:
  std::atomic<bool> happened_ = false;
  std::promise<std::thread::id> thread_;
};

// Puts it off, at once.
class Postponer final : public CallPoller::Event {
 public:
  Postponer(CallPoller& poller, Note& note) : poller_(poller), note_(note) {
    alarm_.Set(&poller.queue(), absl::ToChronoTime(absl::Now()), this);
  }
  void Happened(bool /*ok*/) override {
    thread_ = std::this_thread::get_id();
    poller_.BeforeWaiting(&note_);
    happened_ = true;
  }
  bool happened() const { return happened_; }
  // Valid once it has happened.
  std::thread::id thread() const { return thread_; }

 private:
  CallPoller& poller_;
  Note& note_;
  grpc::Alarm alarm_;
  std::thread::id thread_;
  std::atomic<bool> happened_ = false;
};

TEST(CallPollerTest, PostponedEventHappensInAThreadThatIsAboutToWait) {
  CallPoller poller(1);
  Note note;
  std::optional<Postponer> postponer;
  std::optional<Timer> later;
  int asked = 0;

  // The second time that it is asked, the poller's own thread stays out, once
  // it has served the event that it may wait for.
  poller.RunUntil([&] {
    if (++asked == 2) postponer.emplace(poller, note);
    if (!postponer.has_value() || !postponer->happened()) return false;
    if (later.has_value()) return later->happened();
    later.emplace(poller, absl::Milliseconds(5));
    return false;  // so that this thread is about to wait
  });

  ASSERT_TRUE(note.happened());
  EXPECT_EQ(note.thread(), std::this_thread::get_id());
}

TEST(CallPollerTest, PostponedEventHappensThoughNoThreadComesBack) {
  for (int threads : {1, 2}) {
    for (int repeated = 0; repeated < 100; ++repeated) {
      Note note;
      CallPoller poller(threads);
      // The poller's own thread may wait already, or not yet.
      std::this_thread::sleep_for(std::chrono::microseconds(repeated * 20));
      Postponer postponer(poller, note);
      poller.RunUntil([&] { return postponer.happened(); });

      const std::thread::id happened_in = note.thread();
      // If the poller's thread has put it off, this one may have been about to
      // wait.
      if (postponer.thread() == std::this_thread::get_id()) {
        EXPECT_NE(happened_in, std::this_thread::get_id());
      }
    }
  }
}

TEST(CallPollerTest, SoonEventHappensInAThreadOfThePoller) {
  for (int threads : {1, 2}) {
    CallPoller poller(threads);
    for (int repeated = 0; repeated < 50; ++repeated) {
      Note note;
      poller.Soon(&note);
      EXPECT_NE(note.thread(), std::this_thread::get_id());
    }
  }
}

TEST(CallPollerTest, EventsAreServedAfterAGuestThatDoesNotComeBack) {
  CallPoller poller(1);
  for (int repeated = 0; repeated < 100; ++repeated) {
    Timer first(poller, absl::ZeroDuration());
    poller.RunUntil([&] { return first.happened(); });
    poller.ServeAlone();
    Timer second(poller, absl::Microseconds(10 * repeated));
    EXPECT_NE(second.thread(), std::this_thread::get_id());
  }
}

TEST(CallPollerTest, CancelledOperationEndsBeforeThePoller) {
  std::list<Timer> timers;
  {
    CallPoller poller(1);
    timers.emplace_back(poller, absl::Hours(1));
    timers.back().Cancel();
  }
  EXPECT_TRUE(timers.back().happened());
  EXPECT_FALSE(timers.back().ok());
}

}  // namespace
}  // namespace lockstep::worker
