#include "worker/compute/cpu/im2col.h"

#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(Im2ColTest, PatchesOfARowHaveZerosOutside) {
  const ConvShape shape = {.images = 1,
                           .height = 1,
                           .width = 3,
                           .channels = 2,
                           .kernel_height = 1,
                           .kernel_width = 3};
  const std::vector<float> image = {1, 2, 3, 4, 5, 6};
  std::vector<float> patches(shape.pixels() * shape.patch(), kNaN);

  ImagesToPatches(shape, image.data(), patches.data());

  EXPECT_THAT(patches, ElementsAreArray({0, 0, 1, 2, 3, 4,  //
                                         1, 2, 3, 4, 5, 6,  //
                                         3, 4, 5, 6, 0, 0}));
}

TEST(Im2ColTest, PatchesAboveAndBelowAreZeros) {
  const ConvShape shape = {.images = 1,
                           .height = 2,
                           .width = 1,
                           .channels = 1,
                           .kernel_height = 3,
                           .kernel_width = 1};
  const std::vector<float> image = {1, 2};
  std::vector<float> patches(6, kNaN);

  ImagesToPatches(shape, image.data(), patches.data());

  EXPECT_THAT(patches, ElementsAre(0, 1, 2, 1, 2, 0));
}

TEST(Im2ColTest, NeighbouringImagesDoNotMix) {
  const ConvShape shape = {.images = 2,
                           .height = 1,
                           .width = 1,
                           .channels = 1,
                           .kernel_height = 3,
                           .kernel_width = 3};
  const std::vector<float> images = {1, 2};
  std::vector<float> patches(18, kNaN);

  ImagesToPatches(shape, images.data(), patches.data());

  EXPECT_THAT(patches, ElementsAreArray({0, 0, 0, 0, 1, 0, 0, 0, 0,  //
                                         0, 0, 0, 0, 2, 0, 0, 0, 0}));
}

// <patches(x), y> = <x, images(y)> for all x and y is what makes one the
// gradient of the other; checked for every pair of unit vectors.
TEST(Im2ColTest, AddingBackIsTheTransposed) {
  const ConvShape shape = {.images = 2,
                           .height = 2,
                           .width = 3,
                           .channels = 2,
                           .kernel_height = 3,
                           .kernel_width = 5};
  const int64_t rows = shape.pixels() * shape.channels;
  const int64_t columns = shape.pixels() * shape.patch();
  std::vector<std::vector<double>> forward;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> unit(rows), patches(columns);
    unit[i] = 1;
    ImagesToPatches(shape, unit.data(), patches.data());
    forward.push_back(patches);
  }

  for (int64_t j = 0; j < columns; ++j) {
    std::vector<double> unit(columns), image(rows);
    unit[j] = 1;
    AddPatchesToImages(shape, unit.data(), image.data());
    for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(image[i], forward[i][j]);
  }
}

TEST(Im2ColTest, AddingBackAddsToWhatIsThere) {
  const ConvShape shape = {.images = 1, .height = 1, .width = 1, .channels = 1};
  const std::vector<float> patches = {5};
  std::vector<float> image = {2};

  AddPatchesToImages(shape, patches.data(), image.data());

  EXPECT_THAT(image, ElementsAre(7));
}

}  // namespace
}  // namespace lockstep::worker::cpu
