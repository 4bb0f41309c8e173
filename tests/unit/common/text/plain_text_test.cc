#include "common/text/plain_text.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(PlainTextTest, ShortTextStaysAsItIs) {
  EXPECT_EQ(CutText("worker 1 is gone"), "worker 1 is gone");
  EXPECT_EQ(CutText(std::string(1024, 'x')), std::string(1024, 'x'));
  EXPECT_EQ(CutText(""), "");
}

TEST(PlainTextTest, LongTextIsCut) {
  EXPECT_EQ(CutText("abcdef", 3), "abc...");
  EXPECT_EQ(CutText(std::string(1 << 20, 'x')).size(), 1024u + 3);
}

TEST(PlainTextTest, CharactersAreNotCut) {
  EXPECT_EQ(CutText("ab\u20ac", 3), "ab...");
  EXPECT_EQ(CutText("ab\u20ac", 4), "ab...");
  EXPECT_EQ(CutText("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(CutText("a\U0001f600b", 4), "a...");
  // Bytes that are no UTF-8 may be cut anywhere.
  EXPECT_EQ(CutText(std::string(100, '\x80'), 50).size(), 46u + 3);
}

TEST(PlainTextTest, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(OneLine("a\nb\tc\rd\x1b[2Je\x7f", 100),
            "a\\nb\\tc\\x0dd\\x1b[2Je\\x7f");
  EXPECT_EQ(OneLine(std::string("a\0b", 3), 100), "a\\x00b");
  EXPECT_EQ(OneLine("a\u009bb", 100), "a\\xc2\\x9bb");
  EXPECT_EQ(OneLine("gr\u00fc\u00dfe \u20ac", 100), "gr\u00fc\u00dfe \u20ac");
  EXPECT_EQ(OneLine("abcdef", 3), "abc...");
}

// Text that is written from right to left, or looks as if it were of two lines,
// can pose as other text.
TEST(PlainTextTest, MarksForTheDirectionOfWritingAreWrittenOut) {
  EXPECT_EQ(OneLine("a\u202eb\u2066c\u2069", 100),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x81\\xa9");
  EXPECT_EQ(OneLine("a\u2028b\u2029c", 100),
            "a\\xe2\\x80\\xa8b\\xe2\\x80\\xa9c");
  EXPECT_EQ(OneLine("a\u200eb\u200fc\u061cd", 100),
            "a\\xe2\\x80\\x8eb\\xe2\\x80\\x8fc\\xd8\\x9cd");
  EXPECT_FALSE(IsOneLine("a\u202eb", 100));
  // Letters of such scripts, and the neighbours of the marks.
  EXPECT_TRUE(IsOneLine("\u05d0\u0627 \u200d\u2010\u2027\u202f\u2065", 100));
  // The beginning of a mark, at the end of the text.
  EXPECT_TRUE(IsOneLine("a\xe2\x80", 100));
}

TEST(PlainTextTest, OneLineHasNoLineBreakAndIsShortEnough) {
  EXPECT_TRUE(IsOneLine("gr\u00fc\u00dfe", 100));
  EXPECT_TRUE(IsOneLine("", 0));
  EXPECT_FALSE(IsOneLine("abcd", 3));
  EXPECT_FALSE(IsOneLine("a\nb", 100));
  EXPECT_FALSE(IsOneLine("a\u0085b", 100));
}

}  // namespace
}  // namespace lockstep
