#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;

struct Conv {
  worker::Shape images;   // [n,h,w,c]
  worker::Shape filters;  // [kh,kw,c,o]
  worker::Conv2DOptions options = {};
};

class Conv2DTest
    : public ::testing::TestWithParam<std::tuple<std::string, Conv>> {
 protected:
  Conv2DTest() : device_(std::get<0>(GetParam())) {}

  std::vector<double> Convolve(const std::vector<double>& images,
                               const std::vector<double>& filters) {
    const worker::Tensor out = device_.Blank(kDouble, out_);
    const absl::Status status = device_.backend().Conv2D(
        device_.Put(kDouble, images_, images),
        device_.Put(kDouble, filters_, filters), out, options_);
    EXPECT_TRUE(status.ok()) << status;
    return device_.Get(out);
  }

  int64_t Padding(int axis) const {
    return options_.padding < 0 ? filters_[axis] / 2 : options_.padding;
  }

  // The side of the output along image axis 1 or 2.
  int64_t Side(int axis) const {
    const int64_t room =
        images_[axis] + 2 * Padding(axis - 1) - filters_[axis - 1];
    return room < 0 ? 0 : room / options_.stride + 1;
  }

  // One output element by the definition.
  double ExpectedAt(const std::vector<double>& images,
                    const std::vector<double>& filters, int64_t image,
                    int64_t y, int64_t x, int64_t filter) const {
    double sum = 0;
    for (int64_t dy = 0; dy < filters_[0]; ++dy) {
      for (int64_t dx = 0; dx < filters_[1]; ++dx) {
        const int64_t row = y * options_.stride + dy - Padding(0);
        const int64_t column = x * options_.stride + dx - Padding(1);
        if (row < 0 || row >= images_[1]) continue;
        if (column < 0 || column >= images_[2]) continue;
        const int64_t pixel = (image * images_[1] + row) * images_[2] + column;
        const int64_t tap = dy * filters_[1] + dx;
        for (int64_t c = 0; c < images_[3]; ++c) {
          sum += images[pixel * images_[3] + c] *
                 filters[(tap * images_[3] + c) * filters_[3] + filter];
        }
      }
    }
    return sum;
  }

  std::vector<double> Expected(const std::vector<double>& images,
                               const std::vector<double>& filters) const {
    std::vector<double> out;
    for (int64_t image = 0; image < out_[0]; ++image) {
      for (int64_t y = 0; y < out_[1]; ++y) {
        for (int64_t x = 0; x < out_[2]; ++x) {
          for (int64_t o = 0; o < out_[3]; ++o) {
            out.push_back(ExpectedAt(images, filters, image, y, x, o));
          }
        }
      }
    }
    return out;
  }

  Device device_;
  const worker::Shape images_ = std::get<1>(GetParam()).images;
  const worker::Shape filters_ = std::get<1>(GetParam()).filters;
  const worker::Conv2DOptions options_ = std::get<1>(GetParam()).options;
  const worker::Shape out_ = {images_[0], Side(1), Side(2), filters_[3]};
};

TEST_P(Conv2DTest, IsTheDefinition) {
  const auto images = RandomValues(images_, 1);
  const auto filters = RandomValues(filters_, 2);

  ExpectNear(Convolve(images, filters), Expected(images, filters), 1e-12);
}

TEST_P(Conv2DTest, InputGradientIsTheDerivative) {
  const auto images = RandomValues(images_, 1);
  const auto filters = RandomValues(filters_, 2);
  const auto weights = RandomValues(out_, 3);
  const worker::Tensor gradient = device_.Blank(kDouble, images_);

  ASSERT_TRUE(device_.backend()
                  .Conv2DInputGradient(device_.Put(kDouble, filters_, filters),
                                       device_.Put(kDouble, out_, weights),
                                       gradient, options_)
                  .ok());

  ExpectGradient(
      [&](const auto& x) { return Dot(Expected(x, filters), weights); }, images,
      device_.Get(gradient), "images");
}

TEST_P(Conv2DTest, FilterGradientIsTheDerivative) {
  const auto images = RandomValues(images_, 1);
  const auto filters = RandomValues(filters_, 2);
  const auto weights = RandomValues(out_, 3);
  const worker::Tensor gradient = device_.Blank(kDouble, filters_);

  ASSERT_TRUE(device_.backend()
                  .Conv2DFilterGradient(device_.Put(kDouble, images_, images),
                                        device_.Put(kDouble, out_, weights),
                                        gradient, options_)
                  .ok());

  ExpectGradient(
      [&](const auto& x) { return Dot(Expected(images, x), weights); }, filters,
      device_.Get(gradient), "filters");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, Conv2DTest,
    ::testing::Combine(
        ::testing::ValuesIn(ViableBackends()),
        ::testing::Values(
            Conv{{1, 1, 1, 1}, {1, 1, 1, 1}}, Conv{{1, 1, 1, 1}, {3, 3, 1, 1}},
            Conv{{2, 1, 5, 2}, {3, 3, 2, 3}}, Conv{{3, 5, 7, 2}, {3, 5, 2, 3}},
            Conv{{2, 4, 3, 3}, {5, 1, 3, 2}}, Conv{{1, 3, 2, 1}, {7, 7, 1, 2}},
            Conv{{2, 5, 6, 2}, {3, 3, 2, 3}, {2}},
            Conv{{2, 5, 4, 2}, {1, 1, 2, 3}, {2}},
            Conv{{2, 6, 5, 1}, {2, 4, 1, 3}, {1, 0}},
            Conv{{1, 7, 5, 2}, {3, 2, 2, 1}, {3, 4}},
            Conv{{1, 2, 9, 1}, {3, 3, 1, 1}, {1, 0}},
            Conv{{0, 3, 3, 2}, {3, 3, 2, 2}})));

}  // namespace
}  // namespace lockstep::testing
