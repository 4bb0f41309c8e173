#include "common/job/beginning.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(BeginningTest, OnlyTheNewestStateIsNoNewBeginning) {
  EXPECT_FALSE(Beginning().anew());
  EXPECT_FALSE(Beginning{Beginning::kNewest}.anew());
  EXPECT_TRUE(Beginning{Beginning::kFresh}.anew());
  EXPECT_TRUE(Beginning{0}.anew());  // the checkpoint of step 0
  EXPECT_TRUE(Beginning{1500}.anew());
}

}  // namespace
}  // namespace lockstep
