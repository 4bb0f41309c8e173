#include "deploy/cli/text/text_format.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(PrintableTest, NoTextBecomesACommandOfTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(Printable("\xc3\xa4"), "??");
  EXPECT_EQ(Printable("plain text"), "plain text");
}

TEST(ClipTest, ShowsThatSomethingIsCutOff) {
  EXPECT_EQ(Clip("abcdef", 6), "abcdef");
  EXPECT_EQ(Clip("abcdef", 4), "abc~");
  EXPECT_EQ(Clip("abcdef", 1), "~");
  EXPECT_EQ(Clip("abcdef", 0), "");
}

}  // namespace
}  // namespace lockstep::cli
