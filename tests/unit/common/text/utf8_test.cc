#include "common/text/utf8.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(Utf8Test, TextOfEveryLengthIsTaken) {
  for (const char* text :
       {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF", "a\xC3\xA9z\xE2\x82\xAC"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, BrokenTextIsRefused) {
  for (const char* text : {
           "\x80",              // continues nothing
           "\xC3",              // cut
           "\xE2\x82",          // cut
           "\xF0\x90\x80",      // cut
           "\xC3(",             // not continued
           "\xE2\x82(",         // not continued
           "\xC0\x80",          // overlong
           "\xC1\xBF",          // overlong
           "\xE0\x9F\xBF",      // overlong
           "\xF0\x8F\xBF\xBF",  // overlong
           "\xED\xA0\x80",      // surrogate
           "\xF4\x90\x80\x80",  // too large
           "\xF5\x80\x80\x80",  // too large
           "\xFF",
           "a\xE9z",  // Latin-1
       }) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, OnlyBrokenTextIsChanged) {
  EXPECT_EQ(ToUtf8("a\xC3\xA9z"), "a\xC3\xA9z");
  EXPECT_EQ(ToUtf8(""), "");
  EXPECT_EQ(ToUtf8("/data/M\xFCller: none"), "/data/M?ller: none");
  // All that is not ASCII: the parts of a broken text may not belong together.
  EXPECT_EQ(ToUtf8("\xC3\xA9 \xC3"), "?? ?");
}

}  // namespace
}  // namespace lockstep
