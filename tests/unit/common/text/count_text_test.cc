#include "common/text/count_text.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(CountTextTest, OnlyOneIsSingular) {
  EXPECT_EQ(CountText(0, "part"), "0 parts");
  EXPECT_EQ(CountText(1, "part"), "1 part");
  EXPECT_EQ(CountText(-1, "part"), "-1 parts");
  EXPECT_EQ(CountText(2, "committed step"), "2 committed steps");
}

}  // namespace
}  // namespace lockstep
