#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"
#include "tests/conformance/compute/replay_check.h"
#include "worker/compute/registry.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kFloat = worker::ElementType::kFloat32;

// The GPU against the CPU, in the precision of training. Everything else of
// the conformance suite runs on the GPU too where there is one.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = worker::WhyNoGpu();
    if (why.empty()) return;
    if (NeedsGpu()) FAIL() << "no GPU: " << why;
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: no GPU: " << why;
  }

  using Run = std::function<worker::Tensor(Device&)>;

  // What `run` computes on both must agree, relative to the largest element.
  static void ExpectAgreement(
      const Run& run, double tolerance,
      worker::Precision precision = worker::Precision::kFloat32) {
    Device cpu("cpu");
    Device gpu("cuda");
    gpu.backend().set_precision(precision);
    const std::vector<double> expected = cpu.Get(run(cpu));
    const std::vector<double> actual = gpu.Get(run(gpu));
    double largest = 1;
    for (double x : expected) largest = std::max(largest, std::abs(x));
    ExpectNear(actual, expected, tolerance * largest);

    Device again("cuda");
    again.backend().set_precision(precision);
    EXPECT_EQ(again.Get(run(again)), actual) << "not the same bits";
  }

  static worker::Tensor Random(Device& d, const worker::Shape& shape,
                               int seed) {
    return d.Put(kFloat, shape, RandomValues(shape, seed));
  }
};

constexpr int64_t kSides[] = {1, 7, 13, 129};

TEST_F(GpuTest, ProductsAgree) {
  const std::pair<worker::Precision, double> precisions[] = {
      {worker::Precision::kFloat32, 1e-5},
      {worker::Precision::kTf32, 1e-3},
      {worker::Precision::kBfloat16, 1e-2}};
  for (const auto& [precision, tolerance] : precisions) {
    for (const int64_t m : kSides) {
      for (const int64_t k : kSides) {
        ExpectAgreement(
            [m = m, k = k](Device& d) {
              const worker::Tensor out = d.Blank(kFloat, {m, 31});
              EXPECT_TRUE(d.backend()
                              .MatMul(Random(d, {k, m}, 1),
                                      Random(d, {k, 31}, 2),
                                      {.transpose_a = true}, out)
                              .ok());
              return out;
            },
            tolerance, precision);
      }
    }
  }
}

// Sides of 64 or more, all multiples of 8: operands that are rounded to
// bfloat16 before they are multiplied; 61 is no such side.
TEST_F(GpuTest, ProductsOfRoundedOperandsAgree) {
  for (const auto& [transpose_a, transpose_b] :
       {std::pair(false, false), {true, false}, {false, true}}) {
    for (const int64_t k : {61, 80}) {
      ExpectAgreement(
          [=, a = transpose_a, b = transpose_b](Device& d) {
            const worker::Tensor out = d.Blank(kFloat, {72, 64});
            const auto rounded = [&](int64_t rows, int64_t columns, int seed) {
              // Eight bits hold these, so that rounding changes nothing, and
              // sums of their products are exact.
              std::vector<double> values = RandomValues({rows, columns}, seed);
              for (double& x : values) x = std::round(x * 64) / 64;
              return d.Put(kFloat, {rows, columns}, values);
            };
            EXPECT_TRUE(d.backend()
                            .MatMul(a ? rounded(k, 72, 1) : rounded(72, k, 1),
                                    b ? rounded(64, k, 2) : rounded(k, 64, 2),
                                    {.transpose_a = a, .transpose_b = b}, out)
                            .ok());
            return out;
          },
          0, worker::Precision::kBfloat16);
    }
  }
}

// So many elements that threads have several.
TEST_F(GpuTest, ElementsOfLargeTensorsAgree) {
  constexpr int64_t kRows = 613;
  constexpr int64_t kColumns = 1031;
  ExpectAgreement(
      [](Device& d) {
        const worker::Tensor out = d.Blank(kFloat, {kRows, kColumns});
        EXPECT_TRUE(
            d.backend().Relu(Random(d, {kRows, kColumns}, 1), out).ok());
        EXPECT_TRUE(d.backend().AddBias(Random(d, {kColumns}, 2), out).ok());
        return out;
      },
      0);
}

TEST_F(GpuTest, SumsOverManyRowsAgree) {
  for (const int64_t rows : {0, 1, 511, 5003}) {
    ExpectAgreement(
        [rows](Device& d) {
          const worker::Tensor out = d.Blank(kFloat, {67});
          EXPECT_TRUE(
              d.backend().BiasGradient(Random(d, {rows, 67}, 1), out).ok());
          return out;
        },
        1e-5);
  }
}

TEST_F(GpuTest, ConvolutionsAgree) {
  for (const int64_t stride : {1, 2}) {
    const int64_t side = (11 + stride - 1) / stride;
    ExpectAgreement(
        [=](Device& d) {
          const worker::Tensor out = d.Blank(kFloat, {3, side, side, 5});
          EXPECT_TRUE(d.backend()
                          .Conv2D(Random(d, {3, 11, 11, 3}, 1),
                                  Random(d, {3, 3, 3, 5}, 2), out,
                                  {.stride = stride})
                          .ok());
          return out;
        },
        1e-5);
    ExpectAgreement(
        [=](Device& d) {
          const worker::Tensor out = d.Blank(kFloat, {3, 11, 11, 3});
          EXPECT_TRUE(d.backend()
                          .Conv2DInputGradient(Random(d, {3, 3, 3, 5}, 1),
                                               Random(d, {3, side, side, 5}, 2),
                                               out, {.stride = stride})
                          .ok());
          return out;
        },
        1e-5);
  }
}

TEST_F(GpuTest, LayerNormsAgree) {
  for (const int64_t n : {2, 129, 1031}) {
    ExpectAgreement(
        [n](Device& d) {
          const worker::Tensor out = d.Blank(kFloat, {17, n});
          EXPECT_TRUE(d.backend()
                          .LayerNorm(Random(d, {17, n}, 1), Random(d, {n}, 2),
                                     Random(d, {n}, 3), 1e-5, out,
                                     d.Blank(kFloat, {17, 2}))
                          .ok());
          return out;
        },
        1e-5);
  }
}

// Lengths on both sides of a tile of 64, heads on both sides of the widths that
// kernels have, the last of which is not fused.
TEST_F(GpuTest, AttentionAgrees) {
  struct Case {
    int64_t length;
    int64_t head;
    worker::Precision precision;
    double tolerance;
  };
  using enum worker::Precision;
  for (const Case& test : std::vector<Case>{{1, 5, kFloat32, 1e-5},
                                            {64, 20, kFloat32, 1e-5},
                                            {67, 72, kFloat32, 1e-5},
                                            {130, 5, kFloat32, 1e-5},
                                            {3, 136, kFloat32, 1e-5},
                                            {70, 64, kFloat32, 1e-5},
                                            {67, 20, kTf32, 3e-3},
                                            {70, 64, kTf32, 3e-3},
                                            {67, 20, kBfloat16, 2e-2},
                                            {130, 64, kBfloat16, 2e-2},
                                            {67, 128, kBfloat16, 2e-2}}) {
    SCOPED_TRACE(test.length);
    const worker::Shape all = {1, test.length, 6 * test.head};
    const worker::Shape one = {1, test.length, 2 * test.head};
    const auto attend = [&](Device& d, bool gradient) {
      const worker::Tensor qkv = Random(d, all, 1);
      const worker::Tensor kept =
          d.Blank(kFloat, d.backend().KeptByAttention(qkv, 2));
      const worker::Tensor out = d.Blank(kFloat, one);
      EXPECT_TRUE(d.backend().CausalAttention(qkv, 2, out, kept).ok());
      if (!gradient) return out;
      const worker::Tensor qkv_gradient = d.Blank(kFloat, all);
      EXPECT_TRUE(d.backend()
                      .CausalAttentionGradient(qkv, 2, out, kept,
                                               Random(d, one, 2), qkv_gradient)
                      .ok());
      return qkv_gradient;
    };
    for (const bool gradient : {false, true}) {
      ExpectAgreement([&](Device& d) { return attend(d, gradient); },
                      test.tolerance, test.precision);
    }
  }
}

// As a flat softmax and one that is all but a single key would be.
TEST_F(GpuTest, AttentionOfLargeScoresAgrees) {
  for (const double scale : {0.0, 1e-3, 30.0}) {
    ExpectAgreement(
        [scale](Device& d) {
          std::vector<double> values = RandomValues(2 * 70 * 48, 3);
          for (double& x : values) x *= scale;
          const worker::Tensor qkv = d.Put(kFloat, {2, 70, 48}, values);
          const worker::Tensor out = d.Blank(kFloat, {2, 70, 16});
          EXPECT_TRUE(
              d.backend()
                  .CausalAttention(
                      qkv, 1, out,
                      d.Blank(kFloat, d.backend().KeptByAttention(qkv, 1)))
                  .ok());
          return out;
        },
        1e-4);
  }
}

TEST_F(GpuTest, AttentionKeepsNoScores) {
  Device gpu("cuda");
  const worker::Tensor qkv = gpu.Blank(kFloat, {2, 70, 48});

  EXPECT_EQ(gpu.backend().KeptByAttention(qkv, 4), worker::Shape({2, 4, 70}));
}

TEST_F(GpuTest, LossesAgree) {
  ExpectAgreement(
      [](Device& d) {
        std::vector<int32_t> labels(37);
        for (size_t i = 0; i < labels.size(); ++i) labels[i] = i * 7 % 257;
        const worker::Tensor out = d.Blank(kFloat, {37, 257});
        EXPECT_TRUE(d.backend()
                        .SoftmaxCrossEntropy(Random(d, {37, 257}, 1),
                                             d.Indices(labels, 257), d.Number(),
                                             out)
                        .ok());
        return out;
      },
      1e-5);
}

TEST_F(GpuTest, RecordingsGiveTheBitsOfLaunches) {
  ExpectReplaysAreLaunches("cuda");
}

TEST_F(GpuTest, DropoutHasTheSameBits) {
  const auto run = [](Device& d) {
    const worker::Tensor out = d.Blank(kFloat, {4099});
    EXPECT_TRUE(d.backend().Dropout(Random(d, {4099}, 1), {0.5, 42}, out).ok());
    return d.Get(out);
  };
  Device cpu("cpu");
  Device gpu("cuda");

  EXPECT_EQ(run(gpu), run(cpu));
}

}  // namespace
}  // namespace lockstep::testing
