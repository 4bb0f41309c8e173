#include "server/shard/shard_pulse.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ShardPulseTest : public ::testing::Test {
 protected:
  // A shard whose lock a test can hold; looks are the test's own.
  ShardPulse::Options Options() {
    return {.every = absl::Milliseconds(1),
            .longest = absl::Seconds(20),
            .touch =
                [this] {
                  waits_ = true;
                  const std::lock_guard<std::mutex> lock(mutex_);
                  waits_ = false;
                },
            .tell =
                [this](bool lives) {
                  const std::lock_guard<std::mutex> lock(told_mutex_);
                  told_.push_back(lives);
                }};
  }
  std::vector<bool> Told() {
    const std::lock_guard<std::mutex> lock(told_mutex_);
    return told_;
  }
  // The test must hold `mutex_`: then the pulse has noted the time of the touch
  // before, and waits in the next one.
  void WaitUntilThePulseWaits() {
    while (!waits_) std::this_thread::yield();
  }
  void WaitUntilTold(size_t times) {
    while (Told().size() < times) std::this_thread::yield();
  }

  testing::ManualClock clock_;
  std::mutex mutex_;  // of the shard
  std::atomic<bool> waits_ = false;
  std::mutex told_mutex_;
  std::vector<bool> told_;
};

TEST_F(ShardPulseTest, LockThatIsHeldForTooLongIsTold) {
  ShardPulse pulse(Options(), clock_);
  {
    const std::lock_guard<std::mutex> held(mutex_);
    WaitUntilThePulseWaits();
    for (int second = 0; second < 20; ++second) {
      clock_.Advance(absl::Seconds(1));
      pulse.Look();
    }
    EXPECT_THAT(Told(), IsEmpty());

    clock_.Advance(absl::Seconds(1));
    WaitUntilTold(1);
    EXPECT_THAT(Told(), ElementsAre(false));
  }

  WaitUntilTold(2);
  EXPECT_THAT(Told(), ElementsAre(false, true));
}

TEST_F(ShardPulseTest, PauseOfTheWholeProcessIsNotTheShards) {
  ShardPulse pulse(Options(), clock_);
  const std::lock_guard<std::mutex> held(mutex_);
  WaitUntilThePulseWaits();
  clock_.Advance(absl::Hours(1));

  pulse.Look();

  EXPECT_THAT(Told(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::server
