#include "common/base/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10'000; ++k) {
        MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(count, 40'000);
}

TEST(CondVarTest, WaitEndsWithTheSignalAndHoldsTheMutexAgain) {
  Mutex mutex;
  CondVar changed;
  int value = 0;
  std::thread other([&] {
    MutexLock lock(mutex);
    value = 7;
    changed.Signal();
  });

  mutex.Lock();
  while (value == 0) changed.Wait(mutex);
  EXPECT_EQ(value, 7);
  mutex.Unlock();
  other.join();
}

TEST(CondVarTest, WaitForSaysThatNoSignalCame) {
  Mutex mutex;
  CondVar changed;
  MutexLock lock(mutex);

  EXPECT_FALSE(changed.WaitFor(mutex, std::chrono::milliseconds(1)));
}

// Now plus the longest duration is a time in the past.
TEST(CondVarTest, LongestWaitDoesNotEndAtOnce) {
  Mutex mutex;
  CondVar changed;
  bool waits = false;
  bool signalled = false;
  std::thread waiter([&] {
    MutexLock lock(mutex);
    waits = true;
    signalled = changed.WaitFor(mutex, std::chrono::nanoseconds::max());
  });
  bool in_wait = false;
  while (!in_wait) {
    MutexLock lock(mutex);
    in_wait = waits;  // the waiter has let go of the mutex: it waits
  }
  changed.SignalAll();
  waiter.join();

  EXPECT_TRUE(signalled);
}

}  // namespace
}  // namespace lockstep
