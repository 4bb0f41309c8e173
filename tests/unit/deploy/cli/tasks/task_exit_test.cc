#include "deploy/cli/tasks/task_exit.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(TaskExitTest, TellsACodeFromASignal) {
  EXPECT_EQ(TaskExit::FromWaitStatus(3 << 8), TaskExit{.code = 3});
  EXPECT_EQ(TaskExit::FromWaitStatus(SIGSEGV), TaskExit{.signal = SIGSEGV});
  EXPECT_TRUE(TaskExit::FromWaitStatus(0).ok());
}

TEST(TaskExitTest, OnlyCodeZeroIsOk) {
  EXPECT_TRUE(TaskExit{}.ok());
  EXPECT_FALSE(TaskExit{.code = 143}.ok());
  EXPECT_FALSE(TaskExit{.signal = SIGTERM}.ok());
}

TEST(TaskExitTest, NamesTheSignal) {
  EXPECT_EQ(TaskExit{.code = 1}.ToString(), "ended with exit code 1");
  EXPECT_EQ(TaskExit{.signal = SIGSEGV}.ToString(),
            "was ended by signal 11 (Segmentation fault)");
}

}  // namespace
}  // namespace lockstep::cli
