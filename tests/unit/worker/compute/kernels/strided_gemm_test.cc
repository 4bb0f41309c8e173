#include "worker/compute/kernels/strided_gemm.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

// The heads of attention: [batch, length, heads, width], one matrix per batch
// and head.
TEST(StridedGemmTest, BatchHasTwoLevels) {
  constexpr int64_t kLength = 7;
  constexpr int64_t kHeads = 3;
  constexpr int64_t kWidth = 4;
  StridedGemm gemm;
  gemm.a = {kHeads * kWidth, kLength * kHeads * kWidth, kWidth};

  EXPECT_EQ(gemm.Offset(gemm.a, 0, 0), 0);
  EXPECT_EQ(gemm.Offset(gemm.a, 0, 2), 2 * kWidth);
  EXPECT_EQ(gemm.Offset(gemm.a, 1, 0), kLength * kHeads * kWidth);
  EXPECT_EQ(gemm.Offset(gemm.a, 2, 1), 2 * kLength * kHeads * kWidth + kWidth);
}

}  // namespace
}  // namespace lockstep::worker
