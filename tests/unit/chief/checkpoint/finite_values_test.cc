#include "chief/checkpoint/finite_values.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename T>
absl::Span<const char> BytesOf(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()),
          elements.size() * sizeof(T)};
}

TEST(FiniteValuesTest, NanAndInfinitiesAreFoundInEachType) {
  EXPECT_EQ(FirstNonFinite(DType::kFloat32,
                           BytesOf<float>({1, -3e38F, INFINITY, NAN})),
            2);
  EXPECT_EQ(FirstNonFinite(DType::kFloat64, BytesOf<double>({-1e308, -NAN})),
            1);
  // 1, 65504 (3.4e38 for bfloat16), -infinity
  EXPECT_EQ(FirstNonFinite(DType::kFloat16,
                           BytesOf<uint16_t>({0x3c00, 0x7bff, 0xfc00})),
            2);
  EXPECT_EQ(FirstNonFinite(DType::kBFloat16,
                           BytesOf<uint16_t>({0x3f80, 0x7f7f, 0xff80})),
            2);
  EXPECT_EQ(FirstNonFinite(DType::kFloat32, BytesOf<float>({0, 1e-45F})),
            std::nullopt);
  EXPECT_EQ(FirstNonFinite(DType::kFloat32, {}), std::nullopt);
}

class CheckFiniteTest : public ::testing::Test {
 protected:
  // A file with a value of `w` as the last of more elements than are read at
  // once.
  absl::StatusOr<SafetensorsReader> FileWith(float value) {
    std::vector<float> elements(kElements, 0.5F);
    elements.back() = value;
    auto file = SafetensorsWriter::Create(
        temp_dir_.Join("values"), {{"w", TensorType::kF32, {kElements}}}, {});
    EXPECT_OK(file);
    EXPECT_OK((*file)->WriteAt("w", 0, BytesOf(elements)));
    EXPECT_OK((*file)->Finish());
    return SafetensorsReader::Open((*file)->path());
  }

  static constexpr int64_t kElements = (int64_t{1} << 20) + 7;
  TempDir temp_dir_;
  VariableSpec variable_{"w", {kElements}, DType::kFloat32, {}};
};

TEST_F(CheckFiniteTest, InfinityIsRefusedWithItsPlace) {
  const auto file = FileWith(-std::numeric_limits<float>::infinity());
  ASSERT_OK(file);

  EXPECT_THAT(CheckFinite(*file, {variable_}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"w\""), HasSubstr("1048582"))));

  EXPECT_OK(CheckFinite(*file, {}));
  variable_.buffer = true;
  EXPECT_OK(CheckFinite(*file, {variable_}));
}

TEST_F(CheckFiniteTest, FiniteValuesPass) {
  const auto file = FileWith(std::numeric_limits<float>::max());
  ASSERT_OK(file);
  int blocks = 0;

  EXPECT_OK(CheckFinite(*file, {variable_}, [&blocks](int64_t done, int64_t) {
    EXPECT_EQ(done, 0);
    ++blocks;
    return absl::OkStatus();
  }));

  EXPECT_EQ(blocks, 2);
}

TEST_F(CheckFiniteTest, CheckEndsWhereTheTransferWould) {
  const auto file = FileWith(0);
  ASSERT_OK(file);

  EXPECT_THAT(CheckFinite(*file, {variable_},
                          [](int64_t, int64_t) {
                            return absl::CancelledError("stop");
                          }),
              StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep::chief
