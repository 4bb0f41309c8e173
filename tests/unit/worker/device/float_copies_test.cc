#include "worker/device/float_copies.h"

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/numeric/bfloat16.h"
#include "common/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

std::vector<VariableSpec> Variables(DType type) {
  return {{"a", {3}, type, {}}, {"b", {1}, type, {}}};
}

template <typename T>
absl::Span<T> As(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Values go there and gradients back, both of which `T` has exactly or not.
template <typename T>
void ExpectCopies(DType type, T (*round)(float), float exact, float between,
                  float rounded) {
  const ParameterMemory memory = *ParameterMemory::Make(
      Variables(type), ParameterMemory::Gradients::kPrivate);
  const std::unique_ptr<FloatCopies> made =
      *FloatCopies::Make(Variables(DType::kFloat32), memory);
  const FloatCopies& copies = *made;
  As<T>(memory.value(0))[1] = round(exact);
  As<T>(memory.value(1))[0] = round(-2);

  copies.CopyValue(0);
  EXPECT_THAT(As<float>(copies.memory().value(1)), ElementsAre(0));
  copies.CopyValue(1);

  EXPECT_THAT(As<float>(copies.memory().value(0)), ElementsAre(0, exact, 0));
  EXPECT_THAT(As<float>(copies.memory().value(1)), ElementsAre(-2));
  As<float>(copies.memory().gradient(0))[2] = between;
  As<float>(copies.memory().gradient(1))[0] = 4;
  copies.RoundGradient(0);
  EXPECT_EQ(ToFloat(As<T>(memory.gradient(0))[2]), rounded);
  EXPECT_EQ(ToFloat(As<T>(memory.gradient(1))[0]), 0);
}

TEST(FloatCopiesTest, BFloat16HasEightSignificantBits) {
  ExpectCopies<BFloat16>(DType::kBFloat16, ToBFloat16, 1.0f + 0x1p-7f,
                         1.0f + 0x1.8p-8f, 1.0f + 0x1p-7f);
}

TEST(FloatCopiesTest, Float16HasElevenSignificantBits) {
  ExpectCopies<Float16>(
      DType::kFloat16, [](float value) { return ToFloat16(value); },
      1.0f + 0x1p-10f, 1.0f + 0x1.8p-11f, 1.0f + 0x1p-10f);
}

TEST(FloatCopiesTest, NoneAreNeededOfWhatTheModelComputesWith) {
  for (const DType type : {DType::kFloat32, DType::kFloat64}) {
    const ParameterMemory memory = *ParameterMemory::Make(
        Variables(type), ParameterMemory::Gradients::kPrivate);
    EXPECT_FALSE(FloatCopies::AreNeeded(Variables(type), memory));
  }
  const ParameterMemory memory = *ParameterMemory::Make(
      Variables(DType::kFloat16), ParameterMemory::Gradients::kPrivate);
  EXPECT_TRUE(FloatCopies::AreNeeded(Variables(DType::kFloat32), memory));
}

}  // namespace
}  // namespace lockstep::worker
