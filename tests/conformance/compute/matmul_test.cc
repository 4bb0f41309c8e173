#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;

struct Sides {
  int64_t m, k, n;
};

class MatMulTest
    : public ::testing::TestWithParam<std::tuple<std::string, Sides>> {
 protected:
  MatMulTest() : device_(std::get<0>(GetParam())) {}

  worker::Shape AShape(const worker::MatMulOptions& options) const {
    return options.transpose_a ? worker::Shape{sides_.k, sides_.m}
                               : worker::Shape{sides_.m, sides_.k};
  }
  worker::Shape BShape(const worker::MatMulOptions& options) const {
    return options.transpose_b ? worker::Shape{sides_.n, sides_.k}
                               : worker::Shape{sides_.k, sides_.n};
  }

  std::vector<double> Product(const std::vector<double>& a,
                              const std::vector<double>& b,
                              const worker::MatMulOptions& options,
                              const worker::Tensor& out) {
    const absl::Status status = device_.backend().MatMul(
        device_.Put(kDouble, AShape(options), a),
        device_.Put(kDouble, BShape(options), b), options, out);
    EXPECT_TRUE(status.ok()) << status;
    return device_.Get(out);
  }

  // The definition of a matrix product.
  std::vector<double> Expected(const std::vector<double>& a,
                               const std::vector<double>& b,
                               const worker::MatMulOptions& options) const {
    const auto [m, k, n] = sides_;
    std::vector<double> out(m * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t l = 0; l < k; ++l) {
          out[i * n + j] += a[options.transpose_a ? l * m + i : i * k + l] *
                            b[options.transpose_b ? j * k + l : l * n + j];
        }
      }
    }
    return out;
  }

  Device device_;
  const Sides sides_ = std::get<1>(GetParam());
};

TEST_P(MatMulTest, EveryTranspositionIsTheDefinition) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const worker::MatMulOptions options = {transpose_a, transpose_b};
      const auto a = RandomValues(AShape(options), 1);
      const auto b = RandomValues(BShape(options), 2);
      const worker::Tensor out = device_.Blank(kDouble, {sides_.m, sides_.n});

      ExpectNear(Product(a, b, options, out), Expected(a, b, options), 1e-12);
    }
  }
}

TEST_P(MatMulTest, AccumulateAddsToWhatWasThere) {
  const worker::MatMulOptions options = {.accumulate = true};
  const auto a = RandomValues(AShape(options), 1);
  const auto b = RandomValues(BShape(options), 2);
  const worker::Shape shape = {sides_.m, sides_.n};
  const auto before = RandomValues(shape, 3);

  const auto after =
      Product(a, b, options, device_.Put(kDouble, shape, before));

  auto expected = Expected(a, b, options);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  ExpectNear(after, expected, 1e-12);
}

// A product's gradients are products: dA = dC Bt, dB = At dC.
TEST_P(MatMulTest, GradientsAreProductsWithTheTransposed) {
  const auto [m, k, n] = sides_;
  const auto a = RandomValues(m * k, 1);
  const auto b = RandomValues(k * n, 2);
  const auto weights = RandomValues(m * n, 3);
  const worker::Tensor out_gradient = device_.Put(kDouble, {m, n}, weights);
  const worker::Tensor a_gradient = device_.Blank(kDouble, {m, k});
  const worker::Tensor b_gradient = device_.Blank(kDouble, {k, n});

  ASSERT_TRUE(device_.backend()
                  .MatMul(out_gradient, device_.Put(kDouble, {k, n}, b),
                          {.transpose_b = true}, a_gradient)
                  .ok());
  ASSERT_TRUE(device_.backend()
                  .MatMul(device_.Put(kDouble, {m, k}, a), out_gradient,
                          {.transpose_a = true}, b_gradient)
                  .ok());

  ExpectGradient(
      [&](const auto& x) { return Dot(Expected(x, b, {}), weights); }, a,
      device_.Get(a_gradient), "a");
  ExpectGradient(
      [&](const auto& x) { return Dot(Expected(a, x, {}), weights); }, b,
      device_.Get(b_gradient), "b");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, MatMulTest,
    ::testing::Combine(::testing::ValuesIn(ViableBackends()),
                       ::testing::Values(Sides{1, 1, 1}, Sides{1, 7, 1},
                                         Sides{5, 1, 3}, Sides{13, 11, 17},
                                         Sides{0, 3, 2}, Sides{3, 0, 2},
                                         Sides{2, 3, 0})));

}  // namespace
}  // namespace lockstep::testing
