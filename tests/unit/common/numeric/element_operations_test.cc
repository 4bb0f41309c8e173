#include "common/numeric/element_operations.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "common/numeric/vector_clones.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ElementOperationsTest, HyperParametersAreRoundedToTheElementsType) {
  EXPECT_EQ(FromFloat<float>(0.1F), 0.1F);
  EXPECT_EQ(FromFloat<double>(0.1F), 0.10000000149011612);
  EXPECT_EQ(ToFloat(FromFloat<Float16>(0.1F)), 0.0999755859375F);
}

TEST(ElementOperationsTest, RootsAndPowersOfFloat16RoundOnce) {
  EXPECT_EQ(ToFloat(Root(ToFloat16(2.0F))), 1.4140625F);
  EXPECT_EQ(ToFloat(Power(ToFloat16(3.0F), ToFloat16(0.5F))), 1.732421875F);
  EXPECT_EQ(Root(2.0), std::sqrt(2.0));
  EXPECT_EQ(Power(2.0F, 10.0F), 1024.0F);
}

// TensorFlow's vector code keeps the root in float.
TEST(ElementOperationsTest, ReciprocalRootOfFloat16RoundsOnceInAGroup) {
  int differ = 0;
  for (int i = 1; i < 1000; ++i) {
    const float x = ToFloat(ToFloat16(0.01F * static_cast<float>(i)));
    const Float16 once = ReciprocalRoot(ToFloat16(x), /*in_group=*/true);
    const Float16 twice = ReciprocalRoot(ToFloat16(x), /*in_group=*/false);
    EXPECT_EQ(ToFloat(once), ToFloat(ToFloat16(1.0F / std::sqrt(x))));
    const float root = ToFloat(ToFloat16(std::sqrt(x)));
    EXPECT_EQ(ToFloat(twice), ToFloat(ToFloat16(1.0F / root)));
    if (ToFloat(once) != ToFloat(twice)) ++differ;
  }
  EXPECT_GT(differ, 0);
}

TEST(ElementOperationsTest, ElementsNeedNoAlignment) {
  std::array<std::byte, 1 + 2 * sizeof(double)> bytes{};
  const double value = 2.5;
  std::memcpy(bytes.data() + 1 + sizeof(double), &value, sizeof(value));

  EXPECT_EQ(LoadElement<double>(bytes.data() + 1, 1), 2.5);
}

// The loop as kernels have it, with a clone for each processor where the
// compiler makes them.
LOCKSTEP_CLONES void AddOne(size_t n, float* values) {
  LOCKSTEP_INDEPENDENT
  for (size_t i = 0; i < n; ++i) values[i] += 1;
}

TEST(VectorClonesTest, EveryElementIsReachedOnceWhateverTheLength) {
  for (const size_t n : {0, 1, 7, 8, 9, 63, 1000}) {
    std::vector<float> values(n + 1);
    for (size_t i = 0; i <= n; ++i) values[i] = static_cast<float>(i);

    AddOne(n, values.data());

    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(values[i], static_cast<float>(i) + 1);
    }
    EXPECT_EQ(values[n], static_cast<float>(n));
  }
}

}  // namespace
}  // namespace lockstep
