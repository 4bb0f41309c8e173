#include "worker/compute/backend/attention_shape.h"

#include "gtest/gtest.h"

namespace lockstep::worker::kernel_backend {
namespace {

// Two sequences of five positions, two heads of three elements.
AttentionShape Shape() {
  return AttentionShape(ConstTensor(ElementType::kFloat32, {2, 5, 18}, nullptr),
                        2);
}

TEST(AttentionShapeTest, SidesComeFromTheTensor) {
  const AttentionShape shape = Shape();

  EXPECT_EQ(shape.sequences, 2);
  EXPECT_EQ(shape.length, 5);
  EXPECT_EQ(shape.width, 6);
  EXPECT_EQ(shape.head(), 3);
  EXPECT_EQ(shape.rows(), 20);
  EXPECT_DOUBLE_EQ(shape.scale() * shape.scale(), 1.0 / 3);
}

TEST(AttentionShapeTest, ProductsReachEachHeadOfEachSequence) {
  const AttentionShape shape = Shape();
  const StridedGemm gemm =
      shape.ToScores(shape.InQkv(), shape.InQkv(), shape.scale());

  EXPECT_EQ(gemm.m, 5);
  EXPECT_EQ(gemm.n, 5);
  EXPECT_EQ(gemm.k, 3);
  EXPECT_TRUE(gemm.b.transpose);
  // Sequence 1, head 1: 5 rows of 18 elements further, and 3.
  EXPECT_EQ(gemm.Offset(gemm.a, 1, 1), 5 * 18 + 3);
  EXPECT_EQ(gemm.Offset(gemm.out, 1, 1), 3 * 25);
}

}  // namespace
}  // namespace lockstep::worker::kernel_backend
