#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

// One operation on fixed inputs that float32 holds exactly, in either
// precision; what it wrote and returned.
struct Operation {
  std::string name;
  std::function<std::vector<double>(Device&, worker::ElementType)> run;
};

// Inputs rounded to float.
worker::Tensor In(Device& device, worker::ElementType type,
                  const worker::Shape& shape, int seed) {
  std::vector<double> values = RandomValues(shape, seed);
  for (double& value : values) value = static_cast<float>(value);
  return device.Put(type, shape, values);
}

std::vector<double> Result(Device& device, const absl::Status& status,
                           const worker::Tensor& out) {
  EXPECT_TRUE(status.ok()) << status;
  return device.Get(out);
}

std::vector<double> MatMul(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {31, 29});
  return Result(d,
                d.backend().MatMul(In(d, t, {31, 101}, 1),
                                   In(d, t, {101, 29}, 2), {}, out),
                out);
}

std::vector<double> BiasGradient(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {13});
  return Result(d, d.backend().BiasGradient(In(d, t, {97, 13}, 1), out), out);
}

std::vector<double> Conv2D(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {3, 11, 7, 5});
  return Result(d,
                d.backend().Conv2D(In(d, t, {3, 11, 7, 4}, 1),
                                   In(d, t, {3, 3, 4, 5}, 2), out),
                out);
}

std::vector<double> Conv2DInputGradient(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {3, 11, 7, 4});
  return Result(d,
                d.backend().Conv2DInputGradient(
                    In(d, t, {3, 3, 4, 5}, 1), In(d, t, {3, 11, 7, 5}, 2), out),
                out);
}

std::vector<double> Conv2DFilterGradient(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {3, 3, 4, 5});
  return Result(
      d,
      d.backend().Conv2DFilterGradient(In(d, t, {3, 11, 7, 4}, 1),
                                       In(d, t, {3, 11, 7, 5}, 2), out),
      out);
}

std::vector<double> MaxPool(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {2, 3, 4, 3});
  const worker::Tensor argmax =
      d.Blank(worker::ElementType::kUint8, {2, 3, 4, 3});
  return Result(
      d, d.backend().MaxPool2x2(In(d, t, {2, 5, 7, 3}, 1), out, argmax), out);
}

std::vector<double> Softmax(Device& d, worker::ElementType t) {
  const worker::Tensor out = d.Blank(t, {7, 10});
  const std::vector<int32_t> labels = {0, 9, 3, 3, 1, 7, 5};
  const worker::Tensor loss = d.Number();
  std::vector<double> result =
      Result(d,
             d.backend().SoftmaxCrossEntropy(In(d, t, {7, 10}, 1),
                                             d.Indices(labels, 10), loss, out),
             out);
  result.push_back(d.NumberAt(loss));
  return result;
}

class PrecisionTest
    : public ::testing::TestWithParam<std::tuple<std::string, Operation>> {};

TEST_P(PrecisionTest, FloatAgreesWithDouble) {
  const auto& [backend, operation] = GetParam();
  Device device(backend);

  const auto single = operation.run(device, worker::ElementType::kFloat32);
  const auto twice = operation.run(device, worker::ElementType::kFloat64);

  ExpectNear(single, twice, 2e-5);
}

TEST_P(PrecisionTest, EqualInputsGiveEqualBits) {
  const auto& [backend, operation] = GetParam();
  Device first(backend);
  Device second(backend);

  EXPECT_EQ(operation.run(first, worker::ElementType::kFloat32),
            operation.run(second, worker::ElementType::kFloat32));
}

INSTANTIATE_TEST_SUITE_P(
    Backends, PrecisionTest,
    ::testing::Combine(
        ::testing::ValuesIn(ViableBackends()),
        ::testing::Values(
            Operation{"MatMul", MatMul},
            Operation{"BiasGradient", BiasGradient},
            Operation{"Conv2D", Conv2D},
            Operation{"Conv2DInputGradient", Conv2DInputGradient},
            Operation{"Conv2DFilterGradient", Conv2DFilterGradient},
            Operation{"MaxPool", MaxPool}, Operation{"Softmax", Softmax})),
    [](const auto& info) {
      return std::get<0>(info.param) + std::get<1>(info.param).name;
    });

}  // namespace
}  // namespace lockstep::testing
