#include "deploy/cli/logs/log_reason.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ReasonInTest, TheLastErrorCountsWhateverFollowsIt) {
  EXPECT_EQ(ReasonIn({"2026-11-23T11:37:20.123 error   worker 1: the first",
                      "2026-11-23T11:37:20.124 error   worker 1: a gradient is "
                      "NaN: step 3",
                      "2026-11-23T11:37:20.125 info    worker 1: leaves"}),
            "a gradient is NaN: step 3");
}

TEST(ReasonInTest, ACriticalLineIsAnError) {
  EXPECT_EQ(ReasonIn({"2026-11-23T11:37:20.123 critical worker 1: no memory",
                      "2026-11-23T11:37:20.125 info    worker 1: leaves"}),
            "no memory");
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

TEST(EndToShowTest, IsTheLastLines) {
  EXPECT_THAT(EndToShow({"a", "b", "c"}, 2), ElementsAre("b", "c"));
  EXPECT_THAT(EndToShow({"a"}, 2), ElementsAre("a"));
  EXPECT_THAT(EndToShow({}, 2), IsEmpty());
}

TEST(EndToShowTest, ATracebackIsWholeAndWithoutMarks) {
  const std::vector<std::string> lines = {
      "before",
      "Traceback (most recent call last):",
      "  File \"train.py\", line 3, in <module>",
      "    worker = lockstep.torch.Worker(model)",
      "             ^^^^^^^^~~~~~",
      "ValueError: another shape"};
  EXPECT_THAT(EndToShow(lines, 2),
              ElementsAre(lines[1], lines[2], lines[3], lines[5]));
  EXPECT_THAT(EndToShow(lines, 9),
              ElementsAre("before", lines[1], lines[2], lines[3], lines[5]));
}

TEST(EndToShowTest, AVeryLongTracebackIsCut) {
  std::vector<std::string> lines = {"Traceback (most recent call last):"};
  for (int i = 0; i < 8; ++i) lines.push_back("  frame");
  EXPECT_THAT(EndToShow(lines, 2), SizeIs(2));
  EXPECT_THAT(EndToShow(lines, 3), SizeIs(9));
}

}  // namespace
}  // namespace lockstep::cli
