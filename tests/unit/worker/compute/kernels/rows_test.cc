#include "worker/compute/kernels/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker::kernels {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::FloatNear;

// A group as simple as the kernels' contract allows.
struct OneThread {
  template <typename T, typename F>
  void Map(int64_t n, T* out, F f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(i);
  }
  template <typename T, typename F>
  T Sum(int64_t n, F f) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += f(i);
    return sum;
  }
  template <typename T, typename F>
  T Max(int64_t n, F f) {
    T largest = -std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, f(i));
    return largest;
  }
  bool Leads() const { return true; }
};

template <typename F>
void Rows(int64_t rows, const F& f) {
  OneThread group;
  for (int64_t row = 0; row < rows; ++row) f(group, row);
}

TEST(RowsTest, CrossEntropyOfLargeLogitsDoesNotOverflow) {
  const std::vector<float> logits = {1000, 1000, 0, 0, 0, std::log(2.0F)};
  const std::vector<int32_t> labels = {1, 2};
  std::vector<float> gradient(6);
  std::vector<double> losses(2);
  Rows(2, SoftmaxCrossEntropy<float>{3, logits.data(), labels.data(), 0.5F,
                                     gradient.data(), losses.data()});

  EXPECT_THAT(losses, ElementsAre(DoubleNear(std::log(2.0), 1e-6),
                                  DoubleNear(std::log(2.0), 1e-6)));
  EXPECT_THAT(gradient,
              ElementsAre(0.25F, -0.25F, 0, FloatNear(0.125F, 1e-7F),
                          FloatNear(0.125F, 1e-7F), FloatNear(-0.25F, 1e-7F)));
}

TEST(RowsTest, FirstOfEqualLogitsIsTheAnswerAndNaNIsNever) {
  const std::vector<float> logits = {2, 2, 1, 2, 2, 1, 2, std::nanf(""), 1};
  const std::vector<int32_t> labels = {0, 1, 0};
  std::vector<double> correct(3);
  Rows(3, IsCorrect<float>{3, logits.data(), labels.data(), correct.data()});

  EXPECT_THAT(correct, ElementsAre(1, 0, 0));

  double share = 0;
  Rows(1, Total{3, correct.data(), 3, &share});
  EXPECT_DOUBLE_EQ(share, 1 / 3.0);
}

TEST(RowsTest, NonFiniteElementsAreCountedInAShortLastRowToo) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1, inf, std::nanf(""), 4, -inf};
  std::vector<double> counts(2);
  Rows(2, CountNonFinite<float>{5, 3, values.data(), counts.data()});

  EXPECT_THAT(counts, ElementsAre(2, 1));
}

class LayerNormTest : public ::testing::Test {
 protected:
  std::vector<double> Out(const std::vector<double>& in) {
    std::vector<double> out(in.size());
    Rows(2, LayerNorm<double>{3, 1e-3, in.data(), scale_.data(), shift_.data(),
                              out.data(), statistics_.data()});
    return out;
  }
  double Loss(const std::vector<double>& in) {
    const std::vector<double> out = Out(in);
    double loss = 0;
    for (size_t i = 0; i < out.size(); ++i) loss += out[i] * gradient_[i];
    return loss;
  }

  const std::vector<double> in_ = {1, 2, 6, -4, 0, 4};
  const std::vector<double> scale_ = {1, 2, -1};
  const std::vector<double> shift_ = {0, 1, 5};
  const std::vector<double> gradient_ = {1, -2, 0.5, 3, -1, 0.25};  // of out
  std::vector<double> statistics_ = std::vector<double>(4);
};

TEST_F(LayerNormTest, RowIsNormalisedBeforeItIsScaled) {
  const std::vector<double> out = Out(in_);

  const double factor = 1 / std::sqrt(14 / 3.0 + 1e-3);
  EXPECT_DOUBLE_EQ(out[0], -2 * factor);
  EXPECT_DOUBLE_EQ(out[1], -1 * factor * 2 + 1);
  EXPECT_DOUBLE_EQ(out[2], 3 * factor * -1 + 5);
  EXPECT_THAT(statistics_[0], 3);
  EXPECT_DOUBLE_EQ(statistics_[1], factor);
}

TEST_F(LayerNormTest, GradientIsThatOfTheLoss) {
  Out(in_);
  std::vector<double> in_gradient(in_.size());
  Rows(2, LayerNormGradient<double>{3, in_.data(), scale_.data(),
                                    statistics_.data(), gradient_.data(),
                                    in_gradient.data()});

  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < in_.size(); ++i) {
    std::vector<double> more = in_;
    std::vector<double> less = in_;
    more[i] += kStep;
    less[i] -= kStep;
    EXPECT_NEAR(in_gradient[i], (Loss(more) - Loss(less)) / (2 * kStep), 1e-6);
  }
}

TEST(RowsTest, PositionSeesItselfAndThoseBefore) {
  std::vector<double> scores = {0, 9, 9, 0, std::log(3.0), 9, 0, 0, 0};
  Rows(3, CausalSoftmax<double>{3, scores.data()});
  EXPECT_THAT(
      scores,
      ElementsAre(1, 0, 0, DoubleNear(0.25, 1e-12), DoubleNear(0.75, 1e-12), 0,
                  DoubleNear(1 / 3.0, 1e-12), DoubleNear(1 / 3.0, 1e-12),
                  DoubleNear(1 / 3.0, 1e-12)));

  std::vector<double> gradient = {5, 7, 7, 4, 8, 7, 1, 2, 6};
  Rows(3, CausalSoftmaxGradient<double>{3, scores.data(), gradient.data()});
  EXPECT_THAT(
      gradient,
      ElementsAre(0, 0, 0, DoubleNear(-0.75, 1e-12), DoubleNear(0.75, 1e-12), 0,
                  DoubleNear(-2 / 3.0, 1e-12), DoubleNear(-1 / 3.0, 1e-12),
                  DoubleNear(1, 1e-12)));
}

}  // namespace
}  // namespace lockstep::worker::kernels
