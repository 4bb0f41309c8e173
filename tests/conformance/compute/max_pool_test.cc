#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;
constexpr worker::ElementType kByte = worker::ElementType::kUint8;

class MaxPoolTest
    : public ::testing::TestWithParam<std::tuple<std::string, worker::Shape>> {
 protected:
  MaxPoolTest() : device_(std::get<0>(GetParam())) {}

  std::vector<double> Pool(const std::vector<double>& in) {
    const worker::Tensor out = device_.Blank(kDouble, half_);
    const absl::Status status = device_.backend().MaxPool2x2(
        device_.Put(kDouble, full_, in), out, argmax_);
    EXPECT_TRUE(status.ok()) << status;
    return device_.Get(out);
  }

  std::vector<double> Expected(const std::vector<double>& in) const {
    std::vector<double> out(RandomValues(half_, 0).size(), -2);
    for (size_t i = 0; i < in.size(); ++i) {
      const int64_t channel = i % full_[3];
      const int64_t x = i / full_[3] % full_[2];
      const int64_t y = i / (full_[3] * full_[2]) % full_[1];
      const int64_t image = i / (full_[3] * full_[2] * full_[1]);
      double& best =
          out[((image * half_[1] + y / 2) * half_[2] + x / 2) * half_[3] +
              channel];
      best = std::max(best, in[i]);
    }
    return out;
  }

  Device device_;
  const worker::Shape full_ = std::get<1>(GetParam());
  const worker::Shape half_ = {full_[0], (full_[1] + 1) / 2, (full_[2] + 1) / 2,
                               full_[3]};
  const worker::Tensor argmax_ = device_.Blank(kByte, half_);
};

TEST_P(MaxPoolTest, TakesTheLargestOfEachWindow) {
  const auto in = RandomValues(full_, 1);

  EXPECT_EQ(Pool(in), Expected(in));
}

TEST_P(MaxPoolTest, GradientIsTheDerivative) {
  const auto in = RandomValues(full_, 1);
  const auto weights = RandomValues(half_, 2);
  Pool(in);
  const worker::Tensor gradient = device_.Blank(kDouble, full_);

  ASSERT_TRUE(device_.backend()
                  .MaxPool2x2Gradient(
                      argmax_, device_.Put(kDouble, half_, weights), gradient)
                  .ok());

  ExpectGradient([&](const auto& x) { return Dot(Expected(x), weights); }, in,
                 device_.Get(gradient), "in");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, MaxPoolTest,
    ::testing::Combine(::testing::ValuesIn(ViableBackends()),
                       ::testing::Values(worker::Shape{1, 1, 1, 1},
                                         worker::Shape{1, 2, 2, 1},
                                         worker::Shape{2, 3, 5, 3},
                                         worker::Shape{1, 7, 4, 2},
                                         worker::Shape{0, 2, 2, 3})));

class MaxPoolTieTest : public ::testing::TestWithParam<std::string> {};

TEST_P(MaxPoolTieTest, FirstOfEqualsTakesTheGradient) {
  Device device(GetParam());
  const worker::Tensor argmax = device.Blank(kByte, {1, 1, 1, 1});
  const worker::Tensor out = device.Blank(kDouble, {1, 1, 1, 1});
  const worker::Tensor gradient = device.Blank(kDouble, {1, 2, 2, 1});

  ASSERT_TRUE(device.backend()
                  .MaxPool2x2(device.Put(kDouble, {1, 2, 2, 1}, {1, 2, 2, 2}),
                              out, argmax)
                  .ok());
  ASSERT_TRUE(device.backend()
                  .MaxPool2x2Gradient(
                      argmax, device.Put(kDouble, {1, 1, 1, 1}, {3}), gradient)
                  .ok());

  EXPECT_THAT(device.Get(argmax), ElementsAre(1));
  EXPECT_THAT(device.Get(gradient), ElementsAre(0, 3, 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Backends, MaxPoolTieTest,
                         ::testing::ValuesIn(ViableBackends()));

}  // namespace
}  // namespace lockstep::testing
