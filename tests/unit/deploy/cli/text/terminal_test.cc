#include "deploy/cli/text/terminal.h"

#include <errno.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/testing/pseudo_terminal.h"

namespace lockstep::cli {
namespace {

// A terminal of 100 columns.
class PtyTest : public ::testing::Test {
 protected:
  const testing::PseudoTerminal pseudo_{100};
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
  const Terminal terminal(pseudo_.inside(), nullptr, "xterm");

  EXPECT_TRUE(terminal.live());
  EXPECT_TRUE(terminal.colour());
}

TEST_F(PtyTest, NoColorIsRespectedUnlessEmpty) {
  EXPECT_FALSE(Terminal(pseudo_.inside(), "1", "xterm").colour());
  EXPECT_TRUE(Terminal(pseudo_.inside(), "1", "xterm").live());
  EXPECT_TRUE(Terminal(pseudo_.inside(), "", "xterm").colour());
}

TEST_F(PtyTest, ADumbTerminalGetsPlainLines) {
  EXPECT_FALSE(Terminal(pseudo_.inside(), nullptr, "dumb").live());
  EXPECT_FALSE(Terminal(pseudo_.inside(), nullptr, nullptr).live());
}

TEST_F(PtyTest, FollowsTheWindow) {
  const Terminal terminal(pseudo_.inside(), nullptr, "xterm");
  EXPECT_EQ(terminal.Columns(), 100u);

  pseudo_.Resize(60);
  EXPECT_EQ(terminal.Columns(), 60u);

  pseudo_.Resize(0);
  EXPECT_EQ(terminal.Columns(), 80u);
}

TEST_F(PtyTest, TextGoesAboveTheLiveLine) {
  Terminal terminal(pseudo_.inside(), nullptr, "xterm");

  terminal.ShowLive("step 1");
  terminal.ShowLive("step 2");
  terminal.Print("note\n");
  terminal.Print("end\n");

  EXPECT_EQ(pseudo_.Shown(),
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
  EXPECT_EQ(testing::ReadSoFar(ends_[0]), "note\n");
}

TEST(TerminalTest, OutputThatNobodyReadsIsDropped) {
  Terminal terminal(-1, nullptr, "xterm");

  EXPECT_EQ(terminal.error(), 0);

  terminal.Print("note\n");

  EXPECT_FALSE(terminal.live());
  EXPECT_EQ(terminal.error(), EBADF);
}

}  // namespace
}  // namespace lockstep::cli
