#include "deploy/cli/text/live_line.h"

#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/pseudo_terminal.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A window of 30 columns.
class LiveLineTest : public ::testing::Test {
 protected:
  std::string Shown() const { return pseudo_.Shown(); }

  testing::ManualClock clock_;
  const testing::PseudoTerminal pseudo_{30};
};

TEST_F(LiveLineTest, IsCutToTheWindowAndRemovedInTheEnd) {
  Terminal terminal(pseudo_.inside(), nullptr, "xterm");
  {
    LiveLine line(terminal, clock_);
    line.Draw([] { return "reads " + std::string(40, 'x') + ", 40 %"; });
    EXPECT_THAT(Shown(), AllOf(HasSubstr("reads xxx"), Not(HasSubstr("40 %"))));
  }
  EXPECT_THAT(Shown(), EndsWith("\x1b[K"));
}

TEST_F(LiveLineTest, IsDrawnTenTimesASecond) {
  Terminal terminal(pseudo_.inside(), nullptr, "xterm");
  LiveLine line(terminal, clock_);
  line.Draw([] { return "first"; });
  clock_.Advance(absl::Milliseconds(99));
  line.Draw([] { return "second"; });
  clock_.Advance(absl::Milliseconds(1));
  line.Draw([] { return "third"; });
  line.Draw([] { return "fourth"; });
  line.Renew();
  line.Draw([] { return "fifth"; });

  EXPECT_THAT(Shown(), AllOf(HasSubstr("first"), Not(HasSubstr("second")),
                             HasSubstr("third"), Not(HasSubstr("fourth")),
                             HasSubstr("fifth")));
}

TEST_F(LiveLineTest, OutputThatIsNoTerminalGetsNothing) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Terminal terminal(ends[1], nullptr, "xterm");
    LiveLine line(terminal, clock_);
    line.Draw([]() -> std::string {
      ADD_FAILURE() << "nobody needs the text";
      return "";
    });
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace lockstep::cli
