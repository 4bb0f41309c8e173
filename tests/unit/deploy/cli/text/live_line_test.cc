#include "deploy/cli/text/live_line.h"

#include <pty.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A window of 24 lines of 30 columns.
class LiveLineTest : public ::testing::Test {
 protected:
  LiveLineTest() {
    winsize size = {.ws_row = 24, .ws_col = 30};
    EXPECT_EQ(openpty(&outside_, &inside_, nullptr, nullptr, &size), 0);
  }
  ~LiveLineTest() override {
    close(inside_);
    close(outside_);
  }

  std::string Shown() const {
    char text[4096];
    const ssize_t got = read(outside_, text, sizeof(text));
    return got > 0 ? std::string(text, got) : "";
  }

  testing::ManualClock clock_;
  int outside_ = -1;
  int inside_ = -1;
};

TEST_F(LiveLineTest, IsCutToTheWindowAndRemovedInTheEnd) {
  Terminal terminal(inside_, nullptr, "xterm");
  {
    LiveLine line(terminal, clock_);
    line.Draw([] { return "reads " + std::string(40, 'x') + ", 40 %"; });
    EXPECT_THAT(Shown(), AllOf(HasSubstr("reads xxx"), Not(HasSubstr("40 %"))));
  }
  EXPECT_THAT(Shown(), EndsWith("\x1b[K"));
}

TEST_F(LiveLineTest, IsDrawnTenTimesASecond) {
  Terminal terminal(inside_, nullptr, "xterm");
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
