#include "deploy/cli/text/text_format.h"

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(PrintableTest, NoTextBecomesACommandOfTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "1m"),
            "a??1m");  // C1's "ESC ["
  EXPECT_EQ(Printable("\xe2\x80\xae"
                      "ab"),
            "???ab");  // from right to left
  EXPECT_EQ(Printable("plain text"), "plain text");
}

TEST(PrintableTest, CharactersOfOtherScriptsStay) {
  EXPECT_EQ(Printable("gr\u00f6\u00dfe \u2603"), "gr\u00f6\u00dfe \u2603");
  EXPECT_EQ(Printable("a\xa4"
                      "b\xc3"),
            "a?b?")
      << "this is no UTF-8";
}

TEST(ClipTest, CountsCharacters) {
  EXPECT_EQ(Columns("gr\u00f6\u00dfe"), 5u);
  EXPECT_EQ(Clip("gr\u00f6\u00dfe", 5), "gr\u00f6\u00dfe");
  EXPECT_EQ(Clip("gr\u00f6\u00dfe", 4), "gr\u00f6~");
}

TEST(ClipTest, ShowsThatSomethingIsCutOff) {
  EXPECT_EQ(Clip("abcdef", 6), "abcdef");
  EXPECT_EQ(Clip("abcdef", 4), "abc~");
  EXPECT_EQ(Clip("abcdef", 1), "~");
  EXPECT_EQ(Clip("abcdef", 0), "");
}

}  // namespace
}  // namespace lockstep::cli
