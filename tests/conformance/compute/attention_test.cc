#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

using Values = std::vector<double>;
constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;

struct Attention {
  worker::Shape qkv;
  int64_t heads;
};

// In float64, which no device fuses; GpuTest has float32.
class AttentionTest : public ::testing::TestWithParam<std::string> {
 protected:
  AttentionTest() : device_(GetParam()) {}

  worker::ComputeBackend& backend() { return device_.backend(); }
  worker::Tensor Put(const worker::Shape& shape, const Values& values) {
    return device_.Put(kDouble, shape, values);
  }
  worker::Tensor Blank(const worker::Shape& shape) {
    return device_.Blank(kDouble, shape);
  }
  Values Get(const worker::ConstTensor& tensor) { return device_.Get(tensor); }

  void Expect(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
  }

  Values Attend(const Attention& shape, const Values& qkv) {
    const worker::Tensor in = Put(shape.qkv, qkv);
    out_ = Blank({shape.qkv[0], shape.qkv[1], shape.qkv[2] / 3});
    kept_ = Blank(backend().KeptByAttention(in, shape.heads));
    Expect(backend().CausalAttention(in, shape.heads, out_, kept_));
    return Get(out_);
  }

  Device device_;
  worker::Tensor out_;
  worker::Tensor kept_;
};

const Attention kAttentions[] = {{{1, 1, 3}, 1},  {{2, 5, 12}, 2},
                                 {{1, 7, 9}, 3},  {{3, 2, 18}, 1},
                                 {{0, 4, 12}, 2}, {{2, 0, 12}, 2}};

// By the definition, a position and a head at a time.
TEST_P(AttentionTest, IsTheDefinition) {
  for (const Attention& shape : kAttentions) {
    const int64_t t = shape.qkv[1], d = shape.qkv[2] / 3;
    const int64_t e = d / shape.heads;
    const Values qkv = RandomValues(shape.qkv, 1);
    const auto at = [&](int64_t n, int64_t i, int64_t block, int64_t column) {
      return qkv[((n * t + i) * 3 + block) * d + column];
    };
    Values expected;
    for (int64_t n = 0; n < shape.qkv[0]; ++n) {
      for (int64_t i = 0; i < t; ++i) {
        for (int64_t column = 0; column < d; ++column) {
          const int64_t head = column / e * e;
          double sum = 0, total = 0;
          for (int64_t j = 0; j <= i; ++j) {
            double score = 0;
            for (int64_t c = head; c < head + e; ++c) {
              score += at(n, i, 0, c) * at(n, j, 1, c);
            }
            const double weight = std::exp(score / std::sqrt(1.0 * e));
            total += weight;
            sum += weight * at(n, j, 2, column);
          }
          expected.push_back(sum / total);
        }
      }
    }

    ExpectNear(Attend(shape, qkv), expected, 1e-12);
  }
}

TEST_P(AttentionTest, GradientIsTheDerivative) {
  for (const Attention& shape : kAttentions) {
    const worker::Shape out = {shape.qkv[0], shape.qkv[1], shape.qkv[2] / 3};
    const Values qkv = RandomValues(shape.qkv, 1);
    const Values weights = RandomValues(out, 2);
    Attend(shape, qkv);
    const worker::Tensor gradient = Blank(shape.qkv);

    Expect(backend().CausalAttentionGradient(Put(shape.qkv, qkv), shape.heads,
                                             out_, kept_, Put(out, weights),
                                             gradient));

    ExpectGradient(
        [&](const Values& x) { return Dot(Attend(shape, x), weights); }, qkv,
        Get(gradient), "qkv");
  }
}

TEST_P(AttentionTest, WidthThatHeadsDoNotDivideIsRefused) {
  EXPECT_FALSE(backend()
                   .CausalAttention(Blank({1, 2, 12}), 3, Blank({1, 2, 4}),
                                    Blank({1, 3, 2, 2}))
                   .ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest,
                         ::testing::ValuesIn(ViableBackends()));

}  // namespace
}  // namespace lockstep::testing
