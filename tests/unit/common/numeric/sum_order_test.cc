#include "common/numeric/sum_order.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// The sizes that TensorFlow showed, of float32 and three ranks.
TEST(SumOrderTest, ChunksOfARingAreThoseOfTensorFlow) {
  EXPECT_EQ(RingChunk(16, 3, 4), 16u);
  EXPECT_EQ(RingChunk(33, 3, 4), 16u);
  EXPECT_EQ(RingChunk(48, 3, 4), 32u);
  EXPECT_EQ(RingChunk(100, 3, 4), 48u);
}

}  // namespace
}  // namespace lockstep
