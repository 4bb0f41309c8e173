#include "worker/compute/cpu/conv2d.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::cpu {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// One row of three pixels, seen through a kernel of three taps.
constexpr ConvShape kRow = {.images = 1,
                            .height = 1,
                            .width = 3,
                            .channels = 1,
                            .kernel_height = 1,
                            .kernel_width = 3,
                            .filters = 1};

// So many images that they go through in several groups.
constexpr ConvShape kGroups = {.images = 700,
                               .height = 10,
                               .width = 10,
                               .channels = 1,
                               .kernel_height = 3,
                               .kernel_width = 3,
                               .filters = 2};

class Conv2DTest : public ::testing::Test {
 protected:
  static std::vector<float> Patches(const ConvShape& shape) {
    return std::vector<float>(PatchElements(shape));
  }
};

TEST_F(Conv2DTest, CorrelatesWithoutFlippingTheKernel) {
  const std::vector<float> image = {1, 2, 3};
  const std::vector<float> filter = {10, 100, 1000};
  std::vector<float> patches = Patches(kRow), out(3);

  Conv2D(kRow, image.data(), filter.data(), patches.data(), out.data());

  EXPECT_THAT(out, ElementsAre(2100, 3210, 320));
}

TEST_F(Conv2DTest, InputGradientSpreadsOverTheTaps) {
  const std::vector<float> filter = {10, 100, 1000};
  const std::vector<float> out_gradient = {0, 1, 0};
  std::vector<float> patches = Patches(kRow), gradient(3, 9);

  Conv2DInputGradient(kRow, filter.data(), out_gradient.data(), patches.data(),
                      gradient.data());

  EXPECT_THAT(gradient, ElementsAre(10, 100, 1000));
}

TEST_F(Conv2DTest, FilterGradientSumsOverPixels) {
  const std::vector<float> image = {1, 2, 3};
  const std::vector<float> out_gradient = {1, 10, 100};
  std::vector<float> patches = Patches(kRow), gradient(3, 9);

  Conv2DFilterGradient(kRow, image.data(), out_gradient.data(), patches.data(),
                       gradient.data());

  EXPECT_THAT(gradient, ElementsAre(210, 321, 32));
}

TEST_F(Conv2DTest, ScratchHoldsAGroupNotTheBatch) {
  EXPECT_LT(PatchElements(kGroups), kGroups.pixels() * kGroups.patch() / 2);
  EXPECT_GE(PatchElements(kGroups), 100 * kGroups.patch());
}

TEST_F(Conv2DTest, GroupsTogetherCoverTheBatch) {
  const std::vector<float> images(kGroups.pixels(), 1);
  const std::vector<float> filters(kGroups.patch() * 2, 1);
  const std::vector<float> out_gradient(kGroups.pixels() * 2, 1);
  std::vector<float> patches = Patches(kGroups);
  std::vector<float> out(kGroups.pixels() * 2), gradient(18);
  std::vector<float> images_gradient(kGroups.pixels());

  Conv2D(kGroups, images.data(), filters.data(), patches.data(), out.data());
  Conv2DFilterGradient(kGroups, images.data(), out_gradient.data(),
                       patches.data(), gradient.data());
  Conv2DInputGradient(kGroups, filters.data(), out_gradient.data(),
                      patches.data(), images_gradient.data());

  // Every image has 64 pixels that the whole kernel sees and 100 at its centre.
  const std::vector<float> inside(out.end() - 2 * 55, out.end() - 2 * 55 + 2);
  EXPECT_THAT(inside, Each(9));
  EXPECT_EQ(gradient[2 * 4], 700 * 100);
  EXPECT_EQ(gradient[0], 700 * 81);
  EXPECT_EQ(images_gradient[kGroups.pixels() - 55], 18);
  EXPECT_EQ(images_gradient.back(), 8);
}

TEST_F(Conv2DTest, NoImagesHaveAZeroGradient) {
  ConvShape none = kRow;
  none.images = 0;
  std::vector<float> patches = Patches(none), gradient(3, 9);

  Conv2DFilterGradient<float>(none, nullptr, nullptr, patches.data(),
                              gradient.data());

  EXPECT_THAT(gradient, Each(0));
}

}  // namespace
}  // namespace lockstep::worker::cpu
