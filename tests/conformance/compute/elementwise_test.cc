#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;

class ElementwiseTest
    : public ::testing::TestWithParam<std::tuple<std::string, worker::Shape>> {
 protected:
  ElementwiseTest() : device_(std::get<0>(GetParam())) {}

  std::vector<double> AddBias(const std::vector<double>& bias,
                              const std::vector<double>& values) {
    const worker::Tensor out = device_.Put(kDouble, shape_, values);
    EXPECT_TRUE(device_.backend()
                    .AddBias(device_.Put(kDouble, {shape_.back()}, bias), out)
                    .ok());
    return device_.Get(out);
  }

  std::vector<double> Relu(const std::vector<double>& values) {
    const worker::Tensor out = device_.Blank(kDouble, shape_);
    EXPECT_TRUE(
        device_.backend().Relu(device_.Put(kDouble, shape_, values), out).ok());
    return device_.Get(out);
  }

  Device device_;
  const worker::Shape shape_ = std::get<1>(GetParam());
};

TEST_P(ElementwiseTest, BiasIsAddedToEveryRow) {
  const auto bias = RandomValues(shape_.back(), 1);
  const auto values = RandomValues(shape_, 2);

  const auto out = AddBias(bias, values);

  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], values[i] + bias[i % bias.size()]);
  }
}

TEST_P(ElementwiseTest, BiasGradientIsTheDerivative) {
  const auto bias = RandomValues(shape_.back(), 1);
  const auto values = RandomValues(shape_, 2);
  const auto weights = RandomValues(shape_, 3);
  const worker::Tensor gradient = device_.Blank(kDouble, {shape_.back()});

  ASSERT_TRUE(device_.backend()
                  .BiasGradient(device_.Put(kDouble, shape_, weights), gradient)
                  .ok());

  ExpectGradient(
      [&](const auto& x) { return Dot(AddBias(x, values), weights); }, bias,
      device_.Get(gradient), "bias");
}

TEST_P(ElementwiseTest, ReluGradientIsTheDerivative) {
  const auto values = RandomValues(shape_, 1);
  const auto weights = RandomValues(shape_, 2);
  const worker::Tensor gradient = device_.Blank(kDouble, shape_);

  ASSERT_TRUE(device_.backend()
                  .ReluGradient(device_.Put(kDouble, shape_, Relu(values)),
                                device_.Put(kDouble, shape_, weights), gradient)
                  .ok());

  ExpectGradient([&](const auto& x) { return Dot(Relu(x), weights); }, values,
                 device_.Get(gradient), "in");
}

TEST_P(ElementwiseTest, ReluAndItsGradientWorkInPlace) {
  const auto values = RandomValues(shape_, 1);
  const auto weights = RandomValues(shape_, 2);
  const worker::Tensor out = device_.Put(kDouble, shape_, values);
  const worker::Tensor gradient = device_.Put(kDouble, shape_, weights);

  ASSERT_TRUE(device_.backend().Relu(out, out).ok());
  ASSERT_TRUE(device_.backend().ReluGradient(out, gradient, gradient).ok());

  EXPECT_EQ(device_.Get(out), Relu(values));
  const auto in_place = device_.Get(gradient);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(in_place[i], values[i] > 0 ? weights[i] : 0);
  }
}

TEST_P(ElementwiseTest, ReluKeepsNaN) {
  const std::vector<double> values(RandomValues(shape_, 1).size(),
                                   std::numeric_limits<double>::quiet_NaN());

  for (const double value : Relu(values)) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(
    Backends, ElementwiseTest,
    ::testing::Combine(
        ::testing::ValuesIn(ViableBackends()),
        ::testing::Values(worker::Shape{1}, worker::Shape{1, 1},
                          worker::Shape{7, 1}, worker::Shape{1, 13},
                          worker::Shape{11, 37}, worker::Shape{2, 3, 5, 7},
                          worker::Shape{0, 5}, worker::Shape{3, 0})));

}  // namespace
}  // namespace lockstep::testing
