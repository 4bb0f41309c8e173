#include "common/trace/span.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(SpanTest, EveryKindHasAName) {
  for (int kind = 1; kind < kSpanKinds; ++kind) {
    EXPECT_NE(SpanName(static_cast<SpanKind>(kind)), "") << kind;
  }
  EXPECT_EQ(SpanName(static_cast<SpanKind>(kSpanKinds)), "");
}

TEST(SpanTest, AttemptsStayWithinTheirField) {
  EXPECT_EQ(SpanAttempt(7), 7);
  EXPECT_EQ(SpanAttempt(-1), 0);
  EXPECT_EQ(SpanAttempt(70000), 65535);
}

}  // namespace
}  // namespace lockstep
