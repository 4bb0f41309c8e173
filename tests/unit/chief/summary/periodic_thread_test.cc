#include "chief/summary/periodic_thread.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(PeriodicThreadTest, CallsAgainAndAgain) {
  std::atomic<int> calls = 0;
  const PeriodicThread thread(absl::Milliseconds(1), [&] { ++calls; });
  while (calls < 3) std::this_thread::yield();
}

TEST(PeriodicThreadTest, TheEndIsNotAwaitedButHasACallOfItsOwn) {
  std::atomic<int> calls = 0;
  {
    const PeriodicThread thread(absl::Hours(1), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lockstep::chief
