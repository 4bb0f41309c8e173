#include "chief/page/html_text.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(EscapeHtmlTest, NoTextBecomesAnElementOrEndsAnAttribute) {
  EXPECT_EQ(EscapeHtml("<script>alert('x')</script>"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
  EXPECT_EQ(EscapeHtml("a\" onload=\"b & c"), "a&quot; onload=&quot;b &amp; c");
  EXPECT_EQ(EscapeHtml("tab\there\n"), "tab\\there\\n");
}

TEST(EscapeHtmlTest, OnlyUtf8Leaves) {
  EXPECT_EQ(EscapeHtml("\xc3\xa4"), "\xc3\xa4");
  EXPECT_EQ(EscapeHtml("a\xff<"), "a?&lt;");
}

TEST(ShortTimeTest, TakesTheUnitThatReadsBest) {
  EXPECT_EQ(ShortTime(absl::Microseconds(180)), "180 us");
  EXPECT_EQ(ShortTime(absl::Microseconds(12'500)), "12.5 ms");
  EXPECT_EQ(ShortTime(absl::Milliseconds(1250)), "1.25 s");
  EXPECT_EQ(ShortTime(absl::Minutes(3)), "3 min");
}

TEST(BytesTextTest, TakesTheUnitThatReadsBest) {
  EXPECT_EQ(BytesText(950), "950 B");
  EXPECT_EQ(BytesText(12.3e6), "12.3 MB");
  EXPECT_EQ(BytesText(1.25e9), "1.2 GB");
  EXPECT_EQ(PercentText(0.534), "53 %");
  EXPECT_EQ(FigureText(0.20841), "0.2084");
  EXPECT_EQ(RateText(2.5), "2.5");
  EXPECT_EQ(RateText(950.4), "950");
  EXPECT_EQ(RateText(1234), "1.2k");
}

}  // namespace
}  // namespace lockstep::chief
