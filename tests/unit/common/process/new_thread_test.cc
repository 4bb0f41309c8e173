#include "common/process/new_thread.h"

#include <unistd.h>

#include <iostream>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kCode = 77;

TEST(NewThreadTest, CallsItsBody) {
  bool called = false;
  absl::StatusOr<std::thread> thread = NewThread([&] { called = true; });
  ASSERT_OK(thread);
  thread->join();
  EXPECT_TRUE(called);
}

TEST(NewThreadTest, ThreadThatCannotBeMadeIsAnErrorThatNamesTheLimits) {
  EXPECT_EXIT(
      {
        ForbidThreads();
        const absl::Status status = NewThread([] {}).status();
        std::cerr << status.message();
        _exit(absl::IsResourceExhausted(status) ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode),
      AllOf(HasSubstr("a thread cannot be made"),
            HasSubstr("processes of a user (ulimit -u) 1,")));
}

// Each call waits for all others.
TEST(CallAtOnceTest, AllCallsAreMadeTogether) {
  Mutex mutex;
  CondVar changed;
  int here = 0;
  std::vector<int> calls(5, 0);
  CallAtOnce(5, [&](int number) {
    MutexLock lock(mutex);
    ++calls[number];
    ++here;
    changed.SignalAll();
    while (here < 5) changed.Wait(mutex);
  });
  EXPECT_THAT(calls, Each(1));
  CallAtOnce(0, [](int) { FAIL(); });
}

TEST(CallAtOnceTest, WithoutThreadsTheCallerMakesAllCalls) {
  EXPECT_EXIT(
      {
        ForbidThreads();
        std::vector<int> calls(5, 0);
        CallAtOnce(5, [&](int number) { ++calls[number]; });
        _exit(calls == std::vector<int>(5, 1) ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode), "");
}

}  // namespace
}  // namespace lockstep
