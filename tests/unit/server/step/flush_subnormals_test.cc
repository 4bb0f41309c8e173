#include "server/step/flush_subnormals.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "common/numeric/dtype.h"
#include "gtest/gtest.h"
#include "server/step/element_math.h"

namespace lockstep::server {
namespace {

template <typename T>
constexpr DType kDType = sizeof(T) == sizeof(float) ? DType::kFloat32
                                                    : DType::kFloat64;

// Some units in the last place, or many, around `center`.
template <typename T>
T Near(T center, std::mt19937_64& random) {
  T value = center;
  for (uint64_t i = random() % 40; i > 0; --i) {
    value = std::nextafter(value, T{0});
  }
  return random() % 2 == 0 ? value : -value;
}

template <typename T>
bool SameBits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <typename T>
class FlushedArithmeticTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FlushedArithmeticTest, Types);

TYPED_TEST(FlushedArithmeticTest, SubnormalsAreZerosOfTheirSign) {
  using T = TypeParam;
  constexpr T kMin = std::numeric_limits<T>::min();
  constexpr T kTiny = std::numeric_limits<T>::denorm_min();

  EXPECT_TRUE(SameBits(FlushedAdd(kTiny, T{-0.0}), T{0}));
  EXPECT_TRUE(SameBits(FlushedAdd(-kTiny, -kTiny), T{-0.0}));
  EXPECT_TRUE(SameBits(FlushedAdd(kMin, kTiny), kMin));
  EXPECT_TRUE(SameBits(FlushedAdd(kMin * T{1.5}, -kMin), T{0}));
  EXPECT_TRUE(SameBits(FlushedDivide(-kMin, T{2}), T{-0.0}));
  EXPECT_TRUE(SameBits(FlushedDivide(kMin * 4, T{2}), kMin * 2));
  // Rounding after the exponent is limited would give the smallest normal.
  EXPECT_TRUE(
      SameBits(FlushedDivide(std::nextafter(kMin * 2, T{0}), T{2}), T{0}));
}

TYPED_TEST(FlushedArithmeticTest, NonFiniteValuesPass) {
  using T = TypeParam;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  EXPECT_EQ(FlushedAdd(kInf, T{1}), kInf);
  EXPECT_TRUE(std::isnan(FlushedAdd(kInf, -kInf)));
  EXPECT_EQ(FlushedDivide(-kInf, T{3}), -kInf);
  EXPECT_TRUE(std::isnan(FlushedDivide(std::nan(""), 3.0)));
}

TYPED_TEST(FlushedArithmeticTest, AgreesWithTheProcessor) {
  using T = TypeParam;
  if (!FlushSubnormals::kByProcessor) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: no processor mode";
  }
  constexpr T kMin = std::numeric_limits<T>::min();
  std::mt19937_64 random(1);

  for (int i = 0; i < 20000; ++i) {
    const T divisor = static_cast<T>(1 + random() % 300);
    const T a = Near(kMin * static_cast<T>(random() % 300), random);
    const T b = Near(kMin * static_cast<T>(random() % 3), random);
    T sum = a;
    T quotient = a;
    {
      const FlushSubnormals mode;
      AddElements(mode, kDType<T>, 1, reinterpret_cast<const std::byte*>(&b),
                  reinterpret_cast<std::byte*>(&sum));
      DivideElements(mode, kDType<T>, 1, static_cast<int64_t>(divisor),
                     reinterpret_cast<std::byte*>(&quotient));
    }

    ASSERT_TRUE(SameBits(FlushedAdd(a, b), sum)) << a << " + " << b;
    ASSERT_TRUE(SameBits(FlushedDivide(a, divisor), quotient))
        << a << " / " << divisor;
  }
}

TEST(FlushSubnormalsTest, EndsWithItsScope) {
  const volatile float tiny = std::numeric_limits<float>::denorm_min();
  { const FlushSubnormals mode; }
  EXPECT_GT(tiny + tiny, 0.0f);
}

}  // namespace
}  // namespace lockstep::server
