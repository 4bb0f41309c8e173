#include "common/text/excerpt.h"

#include <string>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ExcerptTest, ShortTextIsQuotedWhole) {
  EXPECT_EQ(Excerpt("ps0:2222"), "\"ps0:2222\"");
  EXPECT_EQ(Excerpt(""), "\"\"");
  EXPECT_EQ(Excerpt(std::string(60, 'a')), "\"" + std::string(60, 'a') + "\"");
}

TEST(ExcerptTest, LongTextIsCutAfterSixtyCharacters) {
  EXPECT_EQ(Excerpt(std::string(61, 'a')),
            "\"" + std::string(60, 'a') + "...\"");
}

TEST(ExcerptTest, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(Excerpt("a\n\x1b[2J\"\xff"), "\"a\\n\\x1b[2J\\\"\\xff\"");
}

}  // namespace
}  // namespace lockstep
