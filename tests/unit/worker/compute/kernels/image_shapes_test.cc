#include "worker/compute/kernels/image_shapes.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(ConvShapeTest, HalfAKernelOfPaddingKeepsTheSize) {
  const ConvShape shape{2, 28, 30, 3, 5, 5, 8};
  EXPECT_EQ(shape.out_height(), 28);
  EXPECT_EQ(shape.out_width(), 30);
  EXPECT_EQ(shape.out_pixels(), 2 * 28 * 30);
  EXPECT_EQ(shape.patch(), 75);
}

TEST(ConvShapeTest, StrideAndPaddingCountThePlacesOfTheKernel) {
  ConvShape shape{1, 224, 224, 3, 7, 7, 64, /*stride=*/2, /*padding=*/3};
  EXPECT_EQ(shape.out_height(), 112);
  shape.padding = 0;
  EXPECT_EQ(shape.out_height(), 109);
  EXPECT_EQ(shape.top(), 0);
}

TEST(ConvShapeTest, KernelThatDoesNotFitHasNoPlace) {
  const ConvShape shape{1, 2, 9, 1, 3, 3, 1, 1, /*padding=*/0};
  EXPECT_EQ(shape.out_height(), 0);
  EXPECT_EQ(shape.out_width(), 7);
  EXPECT_EQ(shape.out_pixels(), 0);
}

TEST(ConvShapeTest, OtherNumberOfImagesChangesNothingElse) {
  const ConvShape shape{8, 6, 6, 2, 3, 3, 4, 2, 1};
  const ConvShape one = shape.Of(1);
  EXPECT_EQ(one.pixels(), 36);
  EXPECT_EQ(8 * one.out_pixels(), shape.out_pixels());
  EXPECT_EQ(one.patch(), shape.patch());
}

TEST(PoolShapeTest, WindowsAtTheFarEdgesCountThoughTheyAreCutOff) {
  const PoolShape shape{2, 5, 4, 3};
  EXPECT_EQ(shape.out_height(), 3);
  EXPECT_EQ(shape.out_width(), 2);
  EXPECT_EQ(shape.pixels(), 40);
  EXPECT_EQ(shape.out_pixels(), 12);
}

}  // namespace
}  // namespace lockstep::worker
