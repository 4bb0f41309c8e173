#include "common/process/process_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <iostream>
#include <new>
#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kCode = 77;

TEST(ProcessLimitsTest, ThreadsThatCanBeMadeAreEnough) {
  EXPECT_OK(CheckThreads(20));
  EXPECT_OK(CheckThreads(0));
}

TEST(ProcessLimitsTest, TooFewThreadsNameTheLimits) {
  EXPECT_EXIT(
      {
        ForbidThreads();
        const absl::Status status = CheckThreads(20);
        std::cerr << status.message();
        _exit(absl::IsResourceExhausted(status) ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode),
      AllOf(HasSubstr("of 20 threads can be made"),
            HasSubstr("processes of a user (ulimit -u) 1,"),
            HasSubstr("pids.max"), HasSubstr("ulimit -v")));
}

TEST(ProcessLimitsTest, FilesThatCanBeOpenedAreEnough) {
  EXPECT_OK(CheckFiles(20));
  EXPECT_OK(CheckFiles(0));
}

TEST(ProcessLimitsTest, TooFewFilesNameTheLimit) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 16;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);

  EXPECT_THAT(CheckFiles(20),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("of 20 more files"),
                             HasSubstr("ulimit -n"), HasSubstr(", 16"))));

  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  // The check leaves none open.
  for (int i = 0; i < 1000; ++i) ASSERT_OK(CheckFiles(20));
}

TEST(ProcessLimitsTest, MissingThreadEndsTheProcessWithWords) {
  EXPECT_EXIT(
      {
        ExplainMissingResources(kCode);
        ForbidThreads();
        []() noexcept { std::thread([] {}).join(); }();
      },
      ::testing::ExitedWithCode(kCode), HasSubstr("a thread cannot be made"));
}

TEST(ProcessLimitsTest, MissingMemoryEndsTheProcessWithWords) {
  EXPECT_EXIT(
      {
        ExplainMissingResources(kCode);
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      ::testing::ExitedWithCode(kCode),
      AllOf(HasSubstr("there is no memory"), HasSubstr("ulimit -v"),
            HasSubstr("memory.max")));
}

TEST(ProcessLimitsTest, OtherExceptionsEndItAsBefore) {
  EXPECT_EXIT(
      {
        ExplainMissingResources(kCode);
        std::thread([] { throw std::runtime_error("other"); }).join();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

TEST(ProcessLimitsTest, AsManyFilesAsTheSystemAllowsMayBeOpen) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);

  RaiseFileLimit();

  rlimit after = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace lockstep
