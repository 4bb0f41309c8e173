#include "server/update/update_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/numeric/denormals.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

// Not a multiple of any vector width.
constexpr size_t kCount = 1021;

template <typename T>
std::vector<T> RandomValues(int seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<T> normal;
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<T> values(kCount);
  for (T& value : values) {
    value = std::ldexp(normal(generator), exponent(generator));
  }
  values[3] = 0;
  values[5] = std::numeric_limits<T>::infinity();
  values[7] = std::numeric_limits<T>::max();
  return values;
}

// The sign of a NaN is nobody's business.
template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return a.size() == b.size();
}

// The state of one update, with the gradient at an odd address.
template <typename T>
struct Fixture {
  Fixture() {
    for (T& v : slot1) v = std::abs(v);
    odd.resize(kCount * sizeof(T) + 1);
    std::memcpy(odd.data() + 1, gradient.data(), kCount * sizeof(T));
  }
  UpdateBlock<T> Apart() {
    return {kCount,
            odd.data() + 1,
            value.data(),
            new_value.data(),
            {slot0.data(), slot1.data()},
            {new_slot0.data(), new_slot1.data()}};
  }
  UpdateBlock<T> InPlace() {
    return {kCount,
            odd.data() + 1,
            value.data(),
            value.data(),
            {slot0.data(), slot1.data()},
            {slot0.data(), slot1.data()}};
  }
  std::vector<T> gradient = RandomValues<T>(1);
  std::vector<T> value = RandomValues<T>(2);
  std::vector<T> slot0 = RandomValues<T>(3);
  std::vector<T> slot1 = RandomValues<T>(4);
  std::vector<T> new_value = std::vector<T>(kCount);
  std::vector<T> new_slot0 = std::vector<T>(kCount);
  std::vector<T> new_slot1 = std::vector<T>(kCount);
  std::vector<std::byte> odd;
};

template <typename T>
class UpdateKernelsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UpdateKernelsTest, Types);

TYPED_TEST(UpdateKernelsTest, GradientDescentIsThePlainLoop) {
  using T = TypeParam;
  const float rate = 0.1f;
  Fixture<T> f;
  std::vector<T> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    expected[i] = f.value[i] - f.gradient[i] * rate;
  }

  GradientDescentKernel(f.Apart(), rate);
  GradientDescentKernel(f.InPlace(), rate);

  EXPECT_TRUE(SameBits(f.new_value, expected));
  EXPECT_TRUE(SameBits(f.value, expected));
}

TYPED_TEST(UpdateKernelsTest, MomentumIsThePlainLoop) {
  using T = TypeParam;
  const float rate = 0.1f;
  const float momentum = 0.9f;
  Fixture<T> f;
  std::vector<T> slot(kCount);
  std::vector<T> value(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    slot[i] = f.slot0[i] * momentum + f.gradient[i];
    value[i] = f.value[i] - slot[i] * rate;
  }

  MomentumKernel(f.Apart(), rate, momentum);
  MomentumKernel(f.InPlace(), rate, momentum);

  EXPECT_TRUE(SameBits(f.new_value, value));
  EXPECT_TRUE(SameBits(f.new_slot0, slot));
  EXPECT_TRUE(SameBits(f.value, value));
  EXPECT_TRUE(SameBits(f.slot0, slot));
}

TYPED_TEST(UpdateKernelsTest, NesterovIsThePlainLoop) {
  using T = TypeParam;
  const float rate = 0.1f;
  const float momentum = 0.9f;
  Fixture<T> f;
  std::vector<T> slot(kCount);
  std::vector<T> value(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    slot[i] = f.slot0[i] * momentum + f.gradient[i];
    value[i] =
        f.value[i] - (f.gradient[i] * rate + (slot[i] * momentum) * rate);
  }

  NesterovKernel(f.Apart(), rate, momentum);
  NesterovKernel(f.InPlace(), rate, momentum);

  EXPECT_TRUE(SameBits(f.new_value, value));
  EXPECT_TRUE(SameBits(f.new_slot0, slot));
  EXPECT_TRUE(SameBits(f.value, value));
  EXPECT_TRUE(SameBits(f.slot0, slot));
}

TYPED_TEST(UpdateKernelsTest, AdamIsThePlainLoop) {
  using T = TypeParam;
  const AdamCoefficients<T> c = {T(0.003f), T(0.1f), T(0.001f), T(1e-8f)};
  Fixture<T> f;
  std::vector<T> m(kCount);
  std::vector<T> v(kCount);
  std::vector<T> value(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const T g = f.gradient[i];
    m[i] = f.slot0[i] + (g - f.slot0[i]) * c.one_minus_beta1;
    v[i] = f.slot1[i] + (g * g - f.slot1[i]) * c.one_minus_beta2;
    value[i] = f.value[i] - (m[i] * c.alpha) / (std::sqrt(v[i]) + c.epsilon);
  }

  AdamKernel(f.Apart(), c);
  AdamKernel(f.InPlace(), c);

  EXPECT_TRUE(SameBits(f.new_value, value));
  EXPECT_TRUE(SameBits(f.new_slot0, m));
  EXPECT_TRUE(SameBits(f.new_slot1, v));
  EXPECT_TRUE(SameBits(f.value, value));
  EXPECT_TRUE(SameBits(f.slot0, m));
  EXPECT_TRUE(SameBits(f.slot1, v));
}

TYPED_TEST(UpdateKernelsTest, AddAndDivideAreThePlainLoops) {
  using T = TypeParam;
  Fixture<T> f;
  std::vector<T> sum(kCount);
  std::vector<T> mean(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    sum[i] = f.value[i] + f.gradient[i];
    mean[i] = sum[i] / T{3};
  }
  const auto* value = reinterpret_cast<const std::byte*>(f.value.data());

  AddKernel(kCount, value, f.odd.data() + 1, f.value.data());
  EXPECT_TRUE(SameBits(f.value, sum));
  DivideKernel(kCount, value, T{3}, f.value.data());
  EXPECT_TRUE(SameBits(f.value, mean));
}

TYPED_TEST(UpdateKernelsTest, MeanIsThePlainLoopAndTellsWhetherAllIsFinite) {
  using T = TypeParam;
  Fixture<T> f;
  std::vector<T> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    expected[i] = (f.value[i] + f.gradient[i]) / T{3};
  }
  const auto* value = reinterpret_cast<const std::byte*>(f.value.data());
  const std::byte* gradient = f.odd.data() + 1;

  EXPECT_FALSE(MeanKernel(kCount, value, gradient, T{3}, f.new_value.data()));
  EXPECT_TRUE(SameBits(f.new_value, expected));

  for (size_t at : {size_t{0}, size_t{9}, kCount - 1}) {
    f.value.assign(kCount, std::numeric_limits<T>::max() / 2);
    std::memset(f.odd.data(), 0, f.odd.size());
    EXPECT_TRUE(MeanKernel(kCount, value, gradient, T{2}, f.new_value.data()));
    f.value[at] = std::numeric_limits<T>::quiet_NaN();
    EXPECT_FALSE(MeanKernel(kCount, value, gradient, T{2}, f.new_value.data()));
    f.value[at] = -std::numeric_limits<T>::infinity();
    EXPECT_FALSE(MeanKernel(kCount, value, gradient, T{2}, f.value.data()));
  }
}

TYPED_TEST(UpdateKernelsTest, SubnormalsCountAsZeroInTheFlushingMode) {
  using T = TypeParam;
  const T smallest = std::numeric_limits<T>::min();
  Fixture<T> f;
  f.value.assign(kCount, smallest);
  f.gradient.assign(kCount, smallest / 2);  // subnormal operand
  f.slot0.assign(kCount, smallest);
  std::memcpy(f.odd.data() + 1, f.gradient.data(), kCount * sizeof(T));

  {
    ScopedFlushDenormals flush;
    MomentumKernel(f.Apart(), 1.0f, 0.5f);  // subnormal result s * momentum
  }

  EXPECT_TRUE(SameBits(f.new_slot0, std::vector<T>(kCount, 0)));
  EXPECT_TRUE(SameBits(f.new_value, f.value));
}

TEST(AdamCoefficientsTest, HyperparametersAreFloat32First) {
  const AdamHyperparameters hyper = {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f};

  const auto c = MakeAdamCoefficients<double>(hyper);

  EXPECT_EQ(c.one_minus_beta1, 1 - 0.89999997615814209);
  EXPECT_EQ(c.epsilon, 9.9999999392252903e-09);
  EXPECT_EQ(c.alpha, 0.10000000149011612 * std::sqrt(1 - 0.99900001287460327) /
                         (1 - 0.89999997615814209));
}

TEST(ScopedFlushDenormalsTest, ModeEndsWithTheObject) {
  const float smallest = std::numeric_limits<float>::min();
  float inside = 1;
  {
    ScopedFlushDenormals flush;
    inside = Product(smallest, 0.5f);
  }

  EXPECT_EQ(inside, 0.0f);
  EXPECT_EQ(Product(smallest, 0.5f), smallest / 2);
}

// `value` at element `place` of an odd address, between ordinary ones.
template <typename T>
std::vector<std::byte> OddBytesWith(size_t place, T value) {
  std::vector<T> values(kCount, std::numeric_limits<T>::lowest());
  values[place] = value;
  std::vector<std::byte> bytes(kCount * sizeof(T) + 1);
  std::memcpy(bytes.data() + 1, values.data(), kCount * sizeof(T));
  return bytes;
}

TEST(UpdateKernelsTest, AllFiniteFindsOneBadElementWhereverItIs) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const size_t place : {size_t{0}, kCount / 2, kCount - 1}) {
      EXPECT_FALSE(
          AllFiniteFloat(kCount, OddBytesWith<float>(place, bad).data() + 1));
      EXPECT_FALSE(
          AllFiniteDouble(kCount, OddBytesWith<double>(place, bad).data() + 1));
    }
  }
}

TEST(UpdateKernelsTest, AllFiniteTakesTheLargestAndTheSmallest) {
  for (const float good : {std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::denorm_min(), -0.0f}) {
    EXPECT_TRUE(
        AllFiniteFloat(kCount, OddBytesWith<float>(7, good).data() + 1));
  }
  EXPECT_TRUE(AllFiniteDouble(
      kCount,
      OddBytesWith<double>(7, std::numeric_limits<double>::max()).data() + 1));
  EXPECT_TRUE(AllFiniteFloat(0, nullptr));
}

TEST(UpdateKernelsTest, AllFiniteJudgesEveryBFloat16AsItsFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    std::vector<uint16_t> values(kCount % 64, 0xff7f);  // the lowest
    values[bits % values.size()] = static_cast<uint16_t>(bits);
    std::vector<std::byte> bytes(2 * values.size() + 1);
    std::memcpy(bytes.data() + 1, values.data(), 2 * values.size());

    ASSERT_EQ(AllFiniteBFloat16(values.size(), bytes.data() + 1),
              std::isfinite(std::bit_cast<float>(bits << 16)))
        << bits;
  }
  EXPECT_TRUE(AllFiniteBFloat16(0, nullptr));
}

}  // namespace
}  // namespace lockstep::server
