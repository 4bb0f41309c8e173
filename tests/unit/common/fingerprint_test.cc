#include "common/fingerprint.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(FingerprintTest, ValuesNeverChange) {
  EXPECT_EQ(Fingerprint().value(), 0xcbf29ce484222325u);
  EXPECT_EQ(Fingerprint().Add(uint64_t{0}).value(), 0xa8c7f832281a39c5u);
  EXPECT_EQ(Fingerprint().Add("hidden1/weights").value(), 0xbcd43c83ac5205ebu);
}

TEST(FingerprintTest, BoundariesBetweenFieldsCount) {
  EXPECT_NE(Fingerprint().Add("ab").Add("c").value(),
            Fingerprint().Add("a").Add("bc").value());
}

TEST(FingerprintTest, OrderCounts) {
  EXPECT_NE(Fingerprint().Add(uint64_t{1}).Add(uint64_t{2}).value(),
            Fingerprint().Add(uint64_t{2}).Add(uint64_t{1}).value());
}

}  // namespace
}  // namespace lockstep
