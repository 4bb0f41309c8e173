#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "tests/conformance/compute/gradient_check.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

using Values = std::vector<double>;
constexpr worker::ElementType kDouble = worker::ElementType::kFloat64;
constexpr double kEpsilon = 1e-5;

// Operations of deeper networks, each against its definition or against central
// differences of itself, over odd shapes.
class NetworkTest : public ::testing::TestWithParam<std::string> {
 protected:
  NetworkTest() : device_(GetParam()) {}

  worker::ComputeBackend& backend() { return device_.backend(); }
  worker::Tensor Put(const worker::Shape& shape, const Values& values) {
    return device_.Put(kDouble, shape, values);
  }
  worker::Tensor Random(const worker::Shape& shape, int seed) {
    return Put(shape, RandomValues(shape, seed));
  }
  worker::Tensor Blank(const worker::Shape& shape) {
    return device_.Blank(kDouble, shape);
  }
  Values Get(const worker::ConstTensor& tensor) { return device_.Get(tensor); }

  void Expect(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
  }

  Device device_;
};

const worker::Shape kMatrices[] = {{1, 1},  {3, 1},  {1, 7},
                                   {5, 13}, {37, 3}, {0, 3}};

TEST_P(NetworkTest, ActivationsAreTheirDefinitions) {
  const std::pair<worker::Activation, double (*)(double)> cases[] = {
      {worker::Activation::kTanh, [](double x) { return std::tanh(x); }},
      {worker::Activation::kSigmoid,
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {worker::Activation::kGelu, [](double x) {
         const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
         return x / 2 * (1 + std::tanh(inner));
       }}};
  const Values in = {-1000, -30, -2, -0.5, 0, 1e-9, 0.5, 3, 30, 1000};
  for (const auto& [kind, definition] : cases) {
    const worker::Tensor out = Blank({10});

    Expect(backend().Activate(kind, Put({10}, in), out));

    Values expected;
    for (double x : in) expected.push_back(definition(x));
    ExpectNear(Get(out), expected, 1e-14);
  }
}

TEST_P(NetworkTest, ActivationGradientsAreTheDerivatives) {
  for (const worker::Activation kind :
       {worker::Activation::kTanh, worker::Activation::kSigmoid,
        worker::Activation::kGelu}) {
    for (const worker::Shape& shape : kMatrices) {
      const Values in = RandomValues(shape, 1);
      const Values weights = RandomValues(shape, 2);
      const worker::Tensor gradient = Blank(shape);

      Expect(backend().ActivateGradient(kind, Put(shape, in),
                                        Put(shape, weights), gradient));

      ExpectGradient(
          [&](const Values& x) {
            const worker::Tensor out = Blank(shape);
            Expect(backend().Activate(kind, Put(shape, x), out));
            return Dot(Get(out), weights);
          },
          in, Get(gradient), "in");
    }
  }
}

TEST_P(NetworkTest, CombineAddsMultiples) {
  const worker::Tensor out = Put({2}, {10, 20});

  Expect(backend().Combine(Put({2}, {1, 2}), 3, 0.5, out));

  EXPECT_THAT(Get(out), ElementsAre(8, 16));
}

TEST_P(NetworkTest, CombineWithNothingIsNotPoisoned) {
  const worker::Tensor out = Blank({2});  // NaN

  Expect(backend().Combine(Put({2}, {1, 2}), 3, 0, out));

  EXPECT_THAT(Get(out), ElementsAre(3, 6));
}

TEST_P(NetworkTest, DropoutKeepsTheMean) {
  const worker::Tensor out = Blank({10000});

  Expect(backend().Dropout(Put({10000}, Values(10000, 1)), {0.25, 7}, out));

  double zeros = 0;
  for (double x : Get(out)) {
    EXPECT_TRUE(x == 0 || x == 1 / 0.75);
    zeros += x == 0;
  }
  EXPECT_NEAR(zeros, 2500, 200);
}

// Bits that every device has to draw.
TEST_P(NetworkTest, DropoutFollowsFromKeyAndPlace) {
  const worker::Tensor out = Blank({12});

  Expect(backend().Dropout(Put({12}, Values(12, 1)), {0.5, 1}, out));

  EXPECT_THAT(Get(out), ElementsAre(0, 2, 2, 2, 2, 2, 0, 0, 0, 0, 2, 0));
}

TEST_P(NetworkTest, NoDropoutIsTheIdentity) {
  const Values in = RandomValues(100, 1);
  const worker::Tensor out = Blank({100});

  Expect(backend().Dropout(Put({100}, in), {0, 7}, out));

  EXPECT_EQ(Get(out), in);
}

TEST_P(NetworkTest, AveragePoolIsTheMeanOfEachWindow) {
  const worker::Tensor in =
      Put({1, 3, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const worker::Tensor out = Blank({1, 2, 2, 1});

  Expect(backend().AveragePool(in, 2, out));

  EXPECT_THAT(Get(out), ElementsAre(3.5, 5.5, 9.5, 11.5));
}

TEST_P(NetworkTest, AveragePoolGradientIsTheDerivative) {
  const std::pair<worker::Shape, int64_t> cases[] = {{{2, 5, 3, 2}, 2},
                                                     {{1, 3, 5, 3}, 5},
                                                     {{1, 1, 1, 1}, 1},
                                                     {{0, 4, 4, 2}, 2}};
  for (const auto& pool : cases) {
    const worker::Shape& shape = pool.first;
    const int64_t window = pool.second;
    const worker::Shape small = {shape[0], (shape[1] + window - 1) / window,
                                 (shape[2] + window - 1) / window, shape[3]};
    const Values weights = RandomValues(small, 2);
    const worker::Tensor gradient = Blank(shape);

    Expect(
        backend().AveragePoolGradient(Put(small, weights), window, gradient));

    ExpectGradient(
        [&](const Values& x) {
          const worker::Tensor out = Blank(small);
          Expect(backend().AveragePool(Put(shape, x), window, out));
          return Dot(Get(out), weights);
        },
        RandomValues(shape, 1), Get(gradient), "in");
  }
}

TEST_P(NetworkTest, LayerNormHasMeanZeroAndVarianceOne) {
  const worker::Tensor out = Blank({3, 64});

  Expect(backend().LayerNorm(Random({3, 64}, 1), Put({64}, Values(64, 1)),
                             Put({64}, Values(64, 0)), 1e-12, out,
                             Blank({3, 2})));

  const Values values = Get(out);
  for (int row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 64; ++i) {
      sum += values[row * 64 + i];
      squares += values[row * 64 + i] * values[row * 64 + i];
    }
    EXPECT_NEAR(sum, 0, 1e-10);
    EXPECT_NEAR(squares / 64, 1, 1e-9);
  }
}

// What LayerNormTest and BatchNormTest share: a function of input, scale and
// shift, and its three gradients.
struct Norm {
  std::function<Values(const Values& in, const Values& scale,
                       const Values& shift)>
      run;
  Values in, scale, shift, weights;
  worker::Tensor in_gradient, scale_gradient, shift_gradient;
};

void ExpectNormGradients(Device& device, const Norm& norm) {
  ExpectGradient(
      [&](const Values& x) {
        return Dot(norm.run(x, norm.scale, norm.shift), norm.weights);
      },
      norm.in, device.Get(norm.in_gradient), "in");
  ExpectGradient(
      [&](const Values& x) {
        return Dot(norm.run(norm.in, x, norm.shift), norm.weights);
      },
      norm.scale, device.Get(norm.scale_gradient), "scale");
  ExpectGradient(
      [&](const Values& x) {
        return Dot(norm.run(norm.in, norm.scale, x), norm.weights);
      },
      norm.shift, device.Get(norm.shift_gradient), "shift");
}

TEST_P(NetworkTest, LayerNormGradientsAreTheDerivatives) {
  for (const worker::Shape& shape : kMatrices) {
    const int64_t n = shape[1];
    if (n < 2) continue;  // variance 0: differences are all rounding
    Norm norm = {.run = {},
                 .in = RandomValues(shape, 1),
                 .scale = RandomValues(n, 2),
                 .shift = RandomValues(n, 3),
                 .weights = RandomValues(shape, 4),
                 .in_gradient = Blank(shape),
                 .scale_gradient = Blank({n}),
                 .shift_gradient = Blank({n})};
    worker::Tensor statistics;
    norm.run = [&](const Values& in, const Values& scale, const Values& shift) {
      const worker::Tensor out = Blank(shape);
      statistics = Blank({shape[0], 2});
      Expect(backend().LayerNorm(Put(shape, in), Put({n}, scale),
                                 Put({n}, shift), kEpsilon, out, statistics));
      return Get(out);
    };
    norm.run(norm.in, norm.scale, norm.shift);

    Expect(backend().LayerNormGradient(
        Put(shape, norm.in), Put({n}, norm.scale), statistics,
        Put(shape, norm.weights), norm.in_gradient, norm.scale_gradient,
        norm.shift_gradient));

    ExpectNormGradients(device_, norm);
  }
}

TEST_P(NetworkTest, BatchStatisticsAreMeansAndVariances) {
  const worker::Tensor statistics = Blank({2, 2});

  Expect(backend().BatchStatistics(Put({2, 2}, {1, 10, 3, 16}), statistics));

  EXPECT_THAT(Get(statistics), ElementsAre(2, 13, 1, 9));
}

TEST_P(NetworkTest, BatchStatisticsOfNothingAreZero) {
  const worker::Tensor statistics = Blank({2, 3});

  Expect(backend().BatchStatistics(Blank({0, 3}), statistics));

  EXPECT_THAT(Get(statistics), Each(0));
}

TEST_P(NetworkTest, BatchNormGradientsAreTheDerivatives) {
  for (const worker::Shape& shape :
       {worker::Shape{5, 3}, worker::Shape{37, 2}, worker::Shape{0, 3}}) {
    const int64_t n = shape[1];
    Norm norm = {.run = {},
                 .in = RandomValues(shape, 1),
                 .scale = RandomValues(n, 2),
                 .shift = RandomValues(n, 3),
                 .weights = RandomValues(shape, 4),
                 .in_gradient = Blank(shape),
                 .scale_gradient = Blank({n}),
                 .shift_gradient = Blank({n})};
    worker::Tensor statistics;
    norm.run = [&](const Values& in, const Values& scale, const Values& shift) {
      const worker::Tensor out = Blank(shape);
      statistics = Blank({2, n});
      const worker::Tensor x = Put(shape, in);
      Expect(backend().BatchStatistics(x, statistics));
      Expect(backend().BatchNorm(x, statistics, Put({n}, scale),
                                 Put({n}, shift), kEpsilon, out));
      return Get(out);
    };
    norm.run(norm.in, norm.scale, norm.shift);

    Expect(backend().BatchNormGradient(
        Put(shape, norm.in), statistics, Put({n}, norm.scale), kEpsilon,
        Put(shape, norm.weights), norm.in_gradient, norm.scale_gradient,
        norm.shift_gradient));

    ExpectNormGradients(device_, norm);
  }
}

TEST_P(NetworkTest, EmbeddingLooksUpRows) {
  const worker::Tensor out = Blank({3, 2});

  Expect(backend().Embed(Put({2, 2}, {1, 2, 3, 4}),
                         device_.Indices({1, 0, 1}, 2), out));

  EXPECT_THAT(Get(out), ElementsAre(3, 4, 1, 2, 3, 4));
}

TEST_P(NetworkTest, EmbeddingGradientSumsPerRow) {
  const worker::Tensor gradient = Blank({3, 2});

  Expect(backend().EmbedGradient(device_.Indices({2, 0, 2}, 3),
                                 Put({3, 2}, {1, 2, 3, 4, 5, 6}), gradient));

  EXPECT_THAT(Get(gradient), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST_P(NetworkTest, IdsThatMayBeOutsideTheTableAreRefused) {
  for (const int64_t bound : {0, 3}) {
    EXPECT_EQ(
        backend()
            .Embed(Blank({2, 2}), device_.Indices({1}, bound), Blank({1, 2}))
            .message(),
        "Embed: ids must be known to be in [0, 2), got [0, " +
            std::to_string(bound) + "); StageIndices() looks");
  }
}

TEST_P(NetworkTest, NonFiniteElementsAreCounted) {
  Values values(40000, 1e300);
  values[0] = NAN;
  values[16384] = INFINITY;
  values[39999] = -INFINITY;

  const worker::Tensor count = device_.Number();

  Expect(backend().CountNonFinite(Put({40000}, values), count));

  EXPECT_EQ(device_.NumberAt(count), 3);
  Expect(backend().CountNonFinite(Blank({0}), count));
  EXPECT_EQ(device_.NumberAt(count), 0);
}

TEST_P(NetworkTest, CopiesBesideOperationsArrive) {
  std::vector<double> up = {1, 2, 3};
  std::vector<double> down(3);
  const worker::Tensor there = Blank({3});

  const absl::StatusOr<worker::CopyId> upload = backend().StartUpload(
      worker::Tensor::Of<double>(absl::MakeSpan(up), {3}), there);
  ASSERT_TRUE(upload.ok()) << upload.status();
  Expect(backend().UseCopy(*upload));
  Expect(backend().Combine(there, 2, 0, there));
  const absl::StatusOr<worker::CopyId> download = backend().StartDownload(
      there, worker::Tensor::Of<double>(absl::MakeSpan(down), {3}));
  ASSERT_TRUE(download.ok()) << download.status();
  Expect(backend().FinishCopy(*download));
  Expect(backend().FinishCopy(*upload));

  EXPECT_TRUE(backend().CopyIsDone(*download).value_or(false));
  EXPECT_THAT(down, ElementsAre(2, 4, 6));
}

INSTANTIATE_TEST_SUITE_P(Backends, NetworkTest,
                         ::testing::ValuesIn(ViableBackends()));

}  // namespace
}  // namespace lockstep::testing
