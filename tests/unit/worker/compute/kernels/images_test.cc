#include "worker/compute/kernels/images.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/worker/compute/kernels/grid.h"

namespace lockstep::worker::kernels {
namespace {

using ::testing::ElementsAre;

TEST(ImagesTest, PatchIsWhatLiesUnderTheKernelAndZeroOutside) {
  const ConvShape shape{1, 2, 2, 1, 3, 3, 1};
  const std::vector<float> image = {1, 2, 3, 4};
  std::vector<float> patches(shape.out_pixels() * shape.patch());
  Grid(shape.out_pixels(), shape.patch(),
       ImagesToPatches<float>{shape, image.data(), patches.data()});

  EXPECT_THAT(std::vector<float>(patches.begin(), patches.begin() + 9),
              ElementsAre(0, 0, 0, 0, 1, 2, 0, 3, 4));
  EXPECT_THAT(std::vector<float>(patches.end() - 9, patches.end()),
              ElementsAre(1, 2, 0, 3, 4, 0, 0, 0, 0));
}

// <patches(x), y> = <x, images(y)> for all x and y.
TEST(ImagesTest, PatchesToImagesIsTheTranspose) {
  for (const int64_t stride : {1, 2}) {
    const ConvShape shape{2, 5, 4, 2, 3, 2, 1, stride, 1};
    std::vector<double> x(shape.pixels() * shape.channels);
    std::vector<double> y(shape.out_pixels() * shape.patch());
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.0 + i);
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::cos(3.0 * i);
    std::vector<double> patches(y.size());
    std::vector<double> images(x.size());
    Grid(shape.out_pixels(), shape.patch(),
         ImagesToPatches<double>{shape, x.data(), patches.data()});
    Grid(shape.pixels(), shape.channels,
         PatchesToImages<double>{shape, y.data(), images.data()});

    EXPECT_NEAR(
        std::inner_product(patches.begin(), patches.end(), y.begin(), 0.0),
        std::inner_product(images.begin(), images.end(), x.begin(), 0.0),
        1e-12);
  }
}

// One image of 3 x 3: the windows at its right and lower edge are cut off.
class PoolTest : public ::testing::Test {
 protected:
  const PoolShape shape_{1, 3, 3, 1};
  const std::vector<double> in_ = {1, 5, 2, 5, 3, 9, 7, 8, 4};
};

TEST_F(PoolTest, FirstOfEqualMaximaIsTakenAndItAloneHasTheGradient) {
  std::vector<double> out(4);
  std::vector<uint8_t> argmax(4);
  Grid(4, 1, MaxPool<double>{shape_, in_.data(), out.data(), argmax.data()});
  EXPECT_THAT(out, ElementsAre(5, 9, 8, 4));
  EXPECT_THAT(argmax, ElementsAre(1, 2, 1, 0));

  const std::vector<double> out_gradient = {1, 2, 3, 4};
  std::vector<double> gradient(9, -1);
  Grid(9, 1,
       MaxPoolGradient<double>{shape_, argmax.data(), out_gradient.data(),
                               gradient.data()});
  EXPECT_THAT(gradient, ElementsAre(0, 1, 0, 0, 0, 2, 0, 3, 4));
}

TEST_F(PoolTest, NaNIsLargerThanAll) {
  std::vector<double> in = in_;
  in[3] = std::nan("");
  std::vector<double> out(4);
  std::vector<uint8_t> argmax(4);
  Grid(4, 1, MaxPool<double>{shape_, in.data(), out.data(), argmax.data()});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 9);
}

TEST_F(PoolTest, MeanIsOverThePixelsThatTheWindowHas) {
  std::vector<double> out(4);
  Grid(4, 1, AveragePool<double>{shape_, in_.data(), out.data()});
  EXPECT_THAT(out, ElementsAre(3.5, 5.5, 7.5, 4));

  const std::vector<double> out_gradient = {4, 4, 4, 4};
  std::vector<double> gradient(9);
  Grid(9, 1,
       AveragePoolGradient<double>{shape_, out_gradient.data(),
                                   gradient.data()});
  EXPECT_THAT(gradient, ElementsAre(1, 1, 2, 1, 1, 2, 2, 2, 4));
}

}  // namespace
}  // namespace lockstep::worker::kernels
