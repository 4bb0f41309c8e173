#include "deploy/examples/bible/verses.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(VersesTest, TheFirst39BooksAreTheOldTestament) {
  std::string text;
  for (int book = 0; book < 41; ++book) {
    absl::StrAppend(&text, "B", std::string(1, 'a' + book % 26),
                    book / 26 > 0 ? "x" : "", "1:1 In the\nB",
                    std::string(1, 'a' + book % 26), book / 26 > 0 ? "x" : "",
                    "2:1 end\n");
  }
  std::istringstream in(text);
  const auto verses = ReadVerses(in);
  ASSERT_OK(verses);
  ASSERT_EQ(verses->size(), 82u);
  EXPECT_EQ((*verses)[0].text, "In the");
  EXPECT_TRUE((*verses)[77].old_testament);
  EXPECT_FALSE((*verses)[78].old_testament);
}

TEST(VersesTest, BooksMayBeginWithANumber) {
  std::istringstream in("1Sam3:4 That the LORD called Samuel\n");
  EXPECT_OK(ReadVerses(in));
}

TEST(VersesTest, LinesThatAreNoVerseAreNamed) {
  for (const char* line : {"Genesis 1", "Ge1:1", "12:1 x", ":"}) {
    std::istringstream in(absl::StrCat("Ge1:1 In\n", line, "\n"));
    EXPECT_THAT(ReadVerses(in), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("line 2")))
        << line;
  }
  std::istringstream nothing("");
  EXPECT_THAT(ReadVerses(nothing),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(VersesTest, WordsAndPairsAreFeatures) {
  const std::string line = LibsvmLine({"Let it, let", true}, 1 << 20);
  // let twice, it, "let it", "it let".
  EXPECT_EQ(std::count(line.begin(), line.end(), ':'), 4);
  EXPECT_THAT(line, HasSubstr("+1 "));
  EXPECT_THAT(line, HasSubstr(":0.7559"));  // 2 / sqrt(4 + 1 + 1 + 1)
  EXPECT_EQ(line, LibsvmLine({"LET it let!", true}, 1 << 20));
}

TEST(VersesTest, OneOfTenIsHeldOut) {
  int held_out = 0;
  for (int64_t i = 0; i < 10000; ++i) held_out += IsHeldOut(i);
  EXPECT_GT(held_out, 900);
  EXPECT_LT(held_out, 1100);
}

}  // namespace
}  // namespace lockstep
