#include "common/flags/wrap_text.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(WrapTextTest, LineThatFitsIsKept) {
  EXPECT_EQ(WrapText("one two", 7), "one two");
}

TEST(WrapTextTest, LongLineBreaksAtTheLastSpaceThatFits) {
  EXPECT_EQ(WrapText("one two three", 8), "one two\nthree");
}

TEST(WrapTextTest, WordThatEndsAtTheWidthStaysOnItsLine) {
  EXPECT_EQ(WrapText("one two three", 7), "one two\nthree");
}

TEST(WrapTextTest, BrokenLinesAreIndented) {
  EXPECT_EQ(WrapText("  aa bb cc dd", 8, 4), "  aa bb\n    cc\n    dd");
}

TEST(WrapTextTest, LineEndsAndLeadingSpacesAreKept) {
  EXPECT_EQ(WrapText("a b\n\n  c\n", 80), "a b\n\n  c\n");
}

TEST(WrapTextTest, WordLongerThanTheWidthIsNotBroken) {
  EXPECT_EQ(WrapText("to /a/very/long/path end", 6),
            "to\n/a/very/long/path\nend");
  EXPECT_EQ(WrapText("aaaaaaaaaa", 4), "aaaaaaaaaa");
}

TEST(WrapTextTest, IndentAsWideAsTheLineStillEnds) {
  EXPECT_EQ(WrapText("aa bb cc", 2, 2), "aa\n  bb\n  cc");
}

TEST(WrapTextTest, TrailingSpacesDoNotMakeALine) {
  EXPECT_EQ(WrapText("aaaa    ", 4), "aaaa    ");
  EXPECT_EQ(WrapText("        ", 4), "        ");
}

TEST(WrapTextTest, EmptyTextStaysEmpty) { EXPECT_EQ(WrapText("", 80), ""); }

}  // namespace
}  // namespace lockstep
