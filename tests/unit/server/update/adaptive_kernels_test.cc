#include "server/update/adaptive_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

// The facts are those of TensorFlow's own tests: values 1 and 2 with gradient
// 0.1 unless something else is said.
template <typename T>
class AdaptiveKernelsTest : public ::testing::Test {
 protected:
  void Start(std::vector<T> value, std::vector<T> gradient,
             std::vector<T> slots) {
    value_ = std::move(value);
    gradient_.resize(gradient.size() * sizeof(T) + 1);
    std::memcpy(gradient_.data() + 1, gradient.data(),
                gradient.size() * sizeof(T));
    for (const T slot : slots) slots_.emplace_back(value_.size(), slot);
  }
  UpdateBlock<T> Block() {
    UpdateBlock<T> block;
    block.count = value_.size();
    block.gradient = gradient_.data() + 1;
    block.old_value = block.new_value = value_.data();
    for (size_t i = 0; i < slots_.size(); ++i) {
      block.old_slots[i] = block.new_slots[i] = slots_[i].data();
    }
    return block;
  }
  void ExpectValue(double first, double second) {
    EXPECT_NEAR(value_[0], first, 2e-6);
    EXPECT_NEAR(value_[1], second, 2e-6);
  }

  std::vector<T> value_;
  std::vector<std::byte> gradient_;
  std::vector<std::vector<T>> slots_;
};

using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AdaptiveKernelsTest, Types);

TYPED_TEST(AdaptiveKernelsTest, AdagradDividesByTheRootOfAllSquares) {
  this->Start({1, 2}, {TypeParam(0.1), TypeParam(0.1)}, {TypeParam(0.1)});
  for (int i = 0; i < 3; ++i) AdagradKernel(this->Block(), 3);
  this->ExpectValue(-1.60260987, -0.60260987);
}

TYPED_TEST(AdaptiveKernelsTest, RmsPropDividesByTheRootOfRecentSquares) {
  this->Start({1, 3}, {TypeParam(0.1), TypeParam(0.01)}, {1, 0});
  RmsPropKernel(this->Block(), {2, 0.9f, 0, 1, false});
  this->ExpectValue(0.8549429179, 2.9854905132);
  EXPECT_NEAR(this->slots_[0][0], 0.901, 1e-6);
  RmsPropKernel(this->Block(), {2, 0.9f, 0, 1, false});
  this->ExpectValue(0.7063620526, 2.9706247083);
}

TYPED_TEST(AdaptiveKernelsTest, RmsPropKeepsItsMomentum) {
  this->Start({1, 3}, {TypeParam(0.1), TypeParam(0.01)}, {1, 0});
  for (int i = 0; i < 2; ++i) {
    RmsPropKernel(this->Block(), {2, 0.9f, 0.5f, 1e-5f, false});
  }
  EXPECT_NEAR(this->slots_[1][0], 0.3273108407, 1e-5);
  this->ExpectValue(0.4619888418, 2.9461557503);
}

TYPED_TEST(AdaptiveKernelsTest, CenteredRmsPropTakesTheMeanOff) {
  this->Start({1, 1}, {1, 1}, {1, 0, 0});
  RmsPropKernel(this->Block(), {1, 0.5f, 0, 0, true});
  // rms 1, mean 1/2: the root of 3/4.
  this->ExpectValue(1 - 1 / std::sqrt(0.75), 1 - 1 / std::sqrt(0.75));
  EXPECT_EQ(this->slots_[1][0], TypeParam(0.5));
}

TYPED_TEST(AdaptiveKernelsTest, AdadeltaNeedsNoRate) {
  this->Start({1, 1}, {TypeParam(0.2), TypeParam(0.2)}, {0, 0});
  const double expected[] = {0.9995527875, 0.9990998779, 0.9986431144,
                             0.9981834098};
  for (const double value : expected) {
    AdadeltaKernel(this->Block(), {1, 0.95f, 1e-8f});
    this->ExpectValue(value, value);
  }
  EXPECT_NEAR(this->slots_[0][0], 0.00741975, 1e-6);
}

TYPED_TEST(AdaptiveKernelsTest, FtrlWithoutRegularisation) {
  this->Start({0, 0}, {TypeParam(0.1), TypeParam(0.2)}, {TypeParam(0.1), 0});
  for (int i = 0; i < 3; ++i) FtrlKernel(this->Block(), {3, -0.5f, 0, 0, 0});
  this->ExpectValue(-2.60260963, -4.29698515);
}

TYPED_TEST(AdaptiveKernelsTest, FtrlWithL1AndL2) {
  this->Start({1, 2}, {TypeParam(0.1), TypeParam(0.2)}, {TypeParam(0.1), 0});
  for (int i = 0; i < 10; ++i) {
    FtrlKernel(this->Block(), {3, -0.5f, 0.001f, 2, 0});
  }
  this->ExpectValue(-0.24059935, -0.46829352);
}

TYPED_TEST(AdaptiveKernelsTest, ShrinkageLeavesTheAccumulatorAlone) {
  this->Start({1, 2}, {TypeParam(0.1), TypeParam(0.2)}, {TypeParam(0.1), 0});
  FtrlKernel(this->Block(), {3, -0.5f, 0, 0, 0});
  const std::vector<TypeParam> accumulator = this->slots_[0];
  const std::vector<TypeParam> value = this->value_;
  this->slots_.clear();
  this->Start({1, 2}, {TypeParam(0.1), TypeParam(0.2)}, {TypeParam(0.1), 0});
  FtrlKernel(this->Block(), {3, -0.5f, 0, 0, 0.5f});

  EXPECT_EQ(this->slots_[0], accumulator);
  EXPECT_NE(this->value_, value);
}

TYPED_TEST(AdaptiveKernelsTest, FtrlFromZeroIsAdagradOrGradientDescent) {
  using T = TypeParam;
  this->Start({0, 0}, {T(0.1), T(0.2)}, {T(0.1)});
  for (int i = 0; i < 5; ++i) AdagradKernel(this->Block(), 3);
  const std::vector<T> adagrad = this->value_;
  this->slots_.clear();
  this->Start({0, 0}, {T(0.1), T(0.2)}, {T(0.1), 0});
  for (int i = 0; i < 5; ++i) FtrlKernel(this->Block(), {3, -0.5f, 0, 0, 0});
  this->ExpectValue(adagrad[0], adagrad[1]);
  this->slots_.clear();
  this->Start({0, 0}, {T(0.1), T(0.2)}, {T(0.1), 0});
  for (int i = 0; i < 5; ++i) FtrlKernel(this->Block(), {3, 0, 0, 0, 0});
  this->ExpectValue(-1.5, -3);
}

TYPED_TEST(AdaptiveKernelsTest, AdagradDaRegularisesByTheNumberOfSteps) {
  using T = TypeParam;
  struct Case {
    float l1, l2;
    double first[2], second[2];  // the values after one and after two steps
  };
  for (const Case& c :
       {Case{0, 0, {-0.904534, -1.6035675}, {-1.7320508, -2.8284271}},
        Case{0.001f, 0, {-0.8954887, -1.5955496}, {-1.7147303, -2.8142850}},
        Case{0.001f, 2, {-0.0469071, -0.0936593}, {-0.0481112, -0.0961023}}}) {
    this->slots_.clear();
    // Where the values begin is forgotten.
    this->Start({1, 2}, {T(0.1), T(0.2)}, {0, T(0.1)});
    AdagradDaKernel(this->Block(), {3, c.l1, c.l2, 1});
    this->ExpectValue(c.first[0], c.first[1]);
    AdagradDaKernel(this->Block(), {3, c.l1, c.l2, 2});
    this->ExpectValue(c.second[0], c.second[1]);
    EXPECT_NEAR(this->slots_[0][1], 0.4, 1e-6);
    EXPECT_NEAR(this->slots_[1][1], 0.18, 1e-6);
  }
}

TYPED_TEST(AdaptiveKernelsTest, ProximalAdagradShrinksByItsOwnRate) {
  using T = TypeParam;
  this->Start({0, 0}, {T(0.1), T(0.2)}, {T(0.1)});
  for (int i = 0; i < 3; ++i) {
    ProximalAdagradKernel(this->Block(), {3, 0, 0, 1});
  }
  EXPECT_NEAR(this->value_[0], -2.60260973, 1e-5);
  EXPECT_NEAR(this->value_[1], -4.29698531, 1e-5);
  EXPECT_NEAR(this->slots_[0][1], 0.22, 1e-6);
  this->slots_.clear();
  this->Start({1, 2}, {T(0.1), T(0.2)}, {T(0.1)});
  for (int i = 0; i < 10; ++i) {
    ProximalAdagradKernel(this->Block(), {3, 0.001f, 0, 1});
  }
  EXPECT_NEAR(this->value_[0], -6.66363434, 2e-5);
  EXPECT_NEAR(this->value_[1], -9.19033069, 2e-5);
  this->slots_.clear();
  this->Start({1, 2}, {T(0.1), T(0.2)}, {T(0.1)});
  for (int i = 0; i < 10; ++i) {
    ProximalAdagradKernel(this->Block(), {3, 0.001f, 2, 1});
  }
  this->ExpectValue(-0.0495, -0.0995);
}

TYPED_TEST(AdaptiveKernelsTest, ProximalGradientDescentShrinksWhatItReaches) {
  using T = TypeParam;
  this->Start({1, 2}, {T(0.1), T(0.2)}, {});
  for (int i = 0; i < 3; ++i) {
    ProximalGradientDescentKernel(this->Block(), {3, 0, 0, 1});
  }
  this->ExpectValue(0.1, 0.2);
  this->Start({1, 2}, {T(0.1), T(0.2)}, {});
  for (int i = 0; i < 3; ++i) {
    ProximalGradientDescentKernel(this->Block(), {3, 0.001f, 0, 1});
  }
  this->ExpectValue(0.091, 0.191);
  this->Start({1, 2}, {T(0.1), T(0.2)}, {});
  for (int i = 0; i < 10; ++i) {
    ProximalGradientDescentKernel(this->Block(), {3, 0.001f, 2, 1});
  }
  this->ExpectValue(-0.0495, -0.0995);
  // Below the threshold nothing is left.
  this->Start({1, -1}, {T(0.5), T(-0.5)}, {});
  ProximalGradientDescentKernel(this->Block(), {1, 0.75f, 0, 1});
  this->ExpectValue(0, 0);
}

// The first element's gradient is no number, or its value is infinite and the
// step takes an infinity from it.
TYPED_TEST(AdaptiveKernelsTest, ShrinkingKeepsANaN) {
  using T = TypeParam;
  const T infinity = std::numeric_limits<T>::infinity();
  for (const T bad : {T(std::nan("")), infinity}) {
    for (const float l1 : {0.0f, 0.125f}) {
      this->slots_.clear();
      this->Start({infinity, 1}, {bad, 0}, {T(0.25)});
      ProximalAdagradKernel(this->Block(), {1, l1, 0, 1});
      EXPECT_TRUE(std::isnan(this->value_[0])) << bad << " " << l1;
      EXPECT_EQ(this->value_[1], 1 - 2 * l1);
      this->Start({infinity, 1}, {bad, 0}, {});
      ProximalGradientDescentKernel(this->Block(), {1, l1, 0, 1});
      EXPECT_TRUE(std::isnan(this->value_[0])) << bad << " " << l1;
      EXPECT_EQ(this->value_[1], 1 - l1);
    }
  }
  this->slots_.clear();
  this->Start({1, 1}, {T(std::nan("")), 0}, {0, T(0.25)});
  AdagradDaKernel(this->Block(), {1, 0.125f, 0, 1});
  EXPECT_TRUE(std::isnan(this->value_[0]));
  EXPECT_EQ(this->value_[1], 0);
}

TYPED_TEST(AdaptiveKernelsTest, DenseFtrlMakesANaNZero) {
  this->Start({1, 1}, {TypeParam(std::nan("")), 0}, {1, 0});
  FtrlKernel(this->Block(), {1, -0.5f, 0, 0, 0});
  EXPECT_EQ(this->value_[0], 0);
}

}  // namespace
}  // namespace lockstep::server
