#include "deploy/cli/text/terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

// Returns everything written to the other end so far.
std::string ReadAll(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  char buffer[4096];
  std::string text;
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) text.append(buffer, got);
  return text;
}

// A pseudo terminal with 100 columns.
class PtyTest : public ::testing::Test {
 protected:
  PtyTest() {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = 100;
    EXPECT_EQ(openpty(&outside_, &inside_, nullptr, nullptr, &size), 0);
  }
  ~PtyTest() override {
    close(outside_);
    close(inside_);
  }

  int outside_ = -1;
  int inside_ = -1;
};

class PipeTest : public ::testing::Test {
 protected:
  PipeTest() { EXPECT_EQ(pipe(ends_), 0); }
  ~PipeTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  int ends_[2] = {-1, -1};
};

TEST_F(PtyTest, IsLiveAndColoured) {
  const Terminal terminal(inside_, nullptr, "xterm");

  EXPECT_TRUE(terminal.live());
  EXPECT_TRUE(terminal.colour());
}

TEST_F(PtyTest, NoColorIsRespectedUnlessEmpty) {
  EXPECT_FALSE(Terminal(inside_, "1", "xterm").colour());
  EXPECT_TRUE(Terminal(inside_, "1", "xterm").live());
  EXPECT_TRUE(Terminal(inside_, "", "xterm").colour());
}

TEST_F(PtyTest, ADumbTerminalGetsPlainLines) {
  EXPECT_FALSE(Terminal(inside_, nullptr, "dumb").live());
  EXPECT_FALSE(Terminal(inside_, nullptr, nullptr).live());
}

TEST_F(PtyTest, FollowsTheWindow) {
  const Terminal terminal(inside_, nullptr, "xterm");
  EXPECT_EQ(terminal.Columns(), 100u);

  winsize size = {};
  size.ws_col = 60;
  ioctl(outside_, TIOCSWINSZ, &size);
  EXPECT_EQ(terminal.Columns(), 60u);

  size.ws_col = 0;
  ioctl(outside_, TIOCSWINSZ, &size);
  EXPECT_EQ(terminal.Columns(), 80u);
}

TEST_F(PtyTest, TextGoesAboveTheLiveLine) {
  Terminal terminal(inside_, nullptr, "xterm");

  terminal.ShowLive("step 1");
  terminal.ShowLive("step 2");
  terminal.Print("note\n");
  terminal.Print("end\n");

  EXPECT_EQ(ReadAll(outside_),
            "\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[Knote\r\nend\r\n");
}

TEST_F(PipeTest, APipeGetsNoLiveLine) {
  Terminal terminal(ends_[1], nullptr, "xterm");

  terminal.ShowLive("step 1");
  terminal.Print("note\n");
  terminal.ClearLive();

  EXPECT_FALSE(terminal.live());
  EXPECT_FALSE(terminal.colour());
  EXPECT_EQ(terminal.Columns(), Terminal::kUnlimited);
  EXPECT_EQ(ReadAll(ends_[0]), "note\n");
}

TEST(TerminalTest, OutputThatNobodyReadsIsDropped) {
  Terminal terminal(-1, nullptr, "xterm");

  terminal.Print("note\n");

  EXPECT_FALSE(terminal.live());
}

}  // namespace
}  // namespace lockstep::cli
