#include "deploy/cli/text/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
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

  // Leaves no room in the pipe.
  void Fill() const {
    const int flags = fcntl(ends_[1], F_GETFL);
    fcntl(ends_[1], F_SETFL, flags | O_NONBLOCK);
    while (write(ends_[1], "x", 1) == 1) {
    }
    fcntl(ends_[1], F_SETFL, flags);
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

TEST_F(PipeTest, LinesThatAPipeDoesNotTakeWait) {
  Fill();
  Terminal terminal(ends_[1], nullptr, nullptr);
  terminal.NeverWait();

  terminal.Print("one\ntwo\n");
  terminal.Print("three\n");

  EXPECT_FALSE(terminal.Flush());
  testing::ReadSoFar(ends_[0]);
  EXPECT_TRUE(terminal.Flush());
  EXPECT_EQ(testing::ReadSoFar(ends_[0]), "one\ntwo\nthree\n");
  EXPECT_EQ(terminal.error(), 0);
}

TEST_F(PipeTest, OfTooManyLinesThatWaitTheOldestAreDropped) {
  Fill();
  Terminal terminal(ends_[1], nullptr, nullptr);
  terminal.NeverWait();

  // One line is being written already, and does not count.
  terminal.Print("first\n");
  for (size_t i = 0; i < Terminal::kMostLines + 2; ++i) {
    terminal.Print(i < 2 ? "old\n" : "new\n");
  }

  testing::ReadSoFar(ends_[0]);
  EXPECT_TRUE(terminal.Flush());
  const std::string shown = testing::ReadSoFar(ends_[0]);
  EXPECT_EQ(shown.substr(0, shown.find("new")),
            "first\n... 2 lines are missing, because the output was blocked\n");
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'),
            2 + static_cast<int64_t>(Terminal::kMostLines));
}

TEST_F(PipeTest, ALongTextThatAPipeTakesInPartsIsComplete) {
  Terminal terminal(ends_[1], nullptr, nullptr);
  terminal.NeverWait();
  const std::string text = std::string(300'000, 'x') + "\n";

  terminal.Print(text);
  std::string shown = testing::ReadSoFar(ends_[0]);
  while (!terminal.Flush()) shown += testing::ReadSoFar(ends_[0]);

  EXPECT_EQ(shown + testing::ReadSoFar(ends_[0]), text);
}

TEST_F(PtyTest, ALiveLineThatATerminalDoesNotTakeIsDropped) {
  Terminal terminal(pseudo_.inside(), nullptr, "xterm");
  terminal.NeverWait();
  ASSERT_EQ(tcflow(pseudo_.inside(), TCOOFF), 0);  // as Ctrl-S does

  terminal.ShowLive("step 1");
  terminal.Print("note\n");
  terminal.ShowLive("step 2");

  EXPECT_EQ(pseudo_.Shown(), "");
  ASSERT_EQ(tcflow(pseudo_.inside(), TCOON), 0);
  terminal.ShowLive("step 3");
  EXPECT_EQ(pseudo_.Shown(), "note\r\n\r\x1b[Kstep 3");
}

TEST(TerminalTest, OutputToAClosedDescriptorIsDropped) {
  Terminal terminal(-1, nullptr, "xterm");

  EXPECT_EQ(terminal.error(), 0);

  terminal.Print("note\n");

  EXPECT_FALSE(terminal.live());
  EXPECT_EQ(terminal.error(), EBADF);
}

}  // namespace
}  // namespace lockstep::cli
