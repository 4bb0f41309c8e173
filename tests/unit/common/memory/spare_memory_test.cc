#include "common/memory/spare_memory.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

// First, so that under a sanitizer these calls find glibc's heap not set up.
TEST(SpareMemoryTest, ThreadsMayReturnMemoryAtTheSameTime) {
  constexpr int kThreads = 8;
  std::atomic<int> waiting = kThreads;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      ReturnFreeMemory();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SpareMemoryTest, SomeIsWorthKeeping) {
  EXPECT_FALSE(KeepsTooMuch({0, 0}));
  EXPECT_FALSE(KeepsTooMuch({512 * kMebibyte, 0}));
  EXPECT_FALSE(KeepsTooMuch({2000 * kMebibyte, 800 * kMebibyte}));
}

TEST(SpareMemoryTest, SpikeThatIsOverIsTooMuch) {
  EXPECT_TRUE(KeepsTooMuch({1700 * kMebibyte, 100 * kMebibyte}));
}

TEST(SpareMemoryTest, UseOfThisProcessIsKnown) {
  std::vector<char> block(64 * kMebibyte, 'x');

  EXPECT_GT(CurrentHeapUse().resident, 32 * kMebibyte);
}

}  // namespace
}  // namespace lockstep
