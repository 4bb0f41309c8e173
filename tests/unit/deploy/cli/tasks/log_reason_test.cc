#include "deploy/cli/tasks/log_reason.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(ReasonInTest, TheLastErrorCountsWhateverFollowsIt) {
  EXPECT_EQ(ReasonIn({"2026-11-23T11:37:20.123 error   worker 1: the first",
                      "2026-11-23T11:37:20.124 error   worker 1: a gradient is "
                      "NaN: step 3",
                      "2026-11-23T11:37:20.125 info    worker 1: leaves"}),
            "a gradient is NaN: step 3");
}

TEST(ReasonInTest, AProgramThatRefusesHasNoLogYet) {
  EXPECT_EQ(ReasonIn({"2026-11-23T11:37:20.123 warning chief 0: no error here",
                      "cannot listen on localhost:80: the port is taken"}),
            "cannot listen on localhost:80: the port is taken");
  EXPECT_EQ(ReasonIn({"worker: unknown flag --x", "Try 'worker --help'."}),
            "worker: unknown flag --x");
}

TEST(ReasonInTest, WithoutAnErrorTheLastLineHasToDo) {
  EXPECT_EQ(
      ReasonIn({"2026-11-23T11:37:20.123 info    ps 0: begins",
                "2026-11-23T11:37:20.123 warning ps 0: stopped: SIGTERM"}),
      "stopped: SIGTERM");
  EXPECT_EQ(ReasonIn({}), "");
}

}  // namespace
}  // namespace lockstep::cli
