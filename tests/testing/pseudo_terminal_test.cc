#include "tests/testing/pseudo_terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

int ColumnsOf(int fd) {
  winsize size = {};
  EXPECT_EQ(ioctl(fd, TIOCGWINSZ, &size), 0);
  return size.ws_col;
}

// Returns all that a program shows until it ends.
std::string ReadAll(const TerminalProgram& program) {
  std::string text;
  while (const auto more = program.ReadMore()) text += *more;
  return text;
}

TEST(PseudoTerminalTest, TheInsideIsATerminalOfTheWidthThatWasAskedFor) {
  const PseudoTerminal terminal(37);

  EXPECT_TRUE(isatty(terminal.inside()));
  EXPECT_EQ(ColumnsOf(terminal.inside()), 37);
  terminal.Resize(91);
  EXPECT_EQ(ColumnsOf(terminal.inside()), 91);
}

TEST(PseudoTerminalTest, EachTextIsShownOnceAndNoTextIsNotWaitedFor) {
  const PseudoTerminal terminal(80);

  EXPECT_EQ(terminal.Shown(), "");
  ASSERT_EQ(write(terminal.inside(), "one\n", 4), 4);
  ASSERT_EQ(write(terminal.inside(), "two", 3), 3);
  EXPECT_EQ(terminal.Shown(), "one\r\ntwo");
  EXPECT_EQ(terminal.Shown(), "");
}

TEST(PseudoTerminalTest, AProgramInheritsNoEnd) {
  const PseudoTerminal terminal(80);
  TerminalProgram program(
      "/bin/sh",
      {"-c", "test -e /proc/self/fd/" + std::to_string(terminal.inside())}, 80);

  EXPECT_EQ(program.Wait(), 1);
}

TEST(TerminalProgramTest, AProgramRunsOnATerminalOfItsOwn) {
  TerminalProgram program(
      "/bin/sh", {"-c", "test -t 0 && stty size && echo $TERM $0 && exit 3"},
      66);

  const std::string shown = ReadAll(program);

  EXPECT_EQ(shown, "24 66\r\nxterm /bin/sh\r\n");
  EXPECT_EQ(program.Wait(), 3);
}

TEST(TerminalProgramTest, KeysReachTheProgramAndCtrlCIsASignal) {
  TerminalProgram program(
      "/bin/sh", {"-c", "read -r line; echo got $line; exec sleep 1000"}, 80);

  program.Type("hello\n");
  std::string shown;
  while (shown.find("got hello") == std::string::npos) {
    const auto more = program.ReadMore();
    ASSERT_TRUE(more.has_value()) << shown;
    shown += *more;
  }
  program.Type("\x03");

  EXPECT_EQ(program.Wait(), -SIGINT);
}

TEST(TerminalProgramTest, AProgramDiesWithItsObject) {
  std::string shown;
  {
    const TerminalProgram program(
        "/bin/sh", {"-c", "trap '' HUP; echo $$; exec sleep 1000"}, 80);
    while (shown.find('\n') == std::string::npos) {
      const auto more = program.ReadMore();
      ASSERT_TRUE(more.has_value());
      shown += *more;
    }
  }
  EXPECT_EQ(kill(std::stoi(shown), 0), -1);
}

TEST(TerminalProgramTest, AProgramThatDoesNotExistEndsWithoutText) {
  TerminalProgram program("/nowhere/program", {}, 80);

  EXPECT_EQ(ReadAll(program), "");
  EXPECT_EQ(program.Wait(), 127);
}

}  // namespace
}  // namespace lockstep::testing
