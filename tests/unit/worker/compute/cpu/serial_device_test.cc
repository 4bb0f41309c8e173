#include "worker/compute/cpu/serial_device.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker::cpu {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(SerialDeviceTest, MemoryIsAlignedAndNothingNeedsNone) {
  const absl::StatusOr<Buffer> some = SerialDevice::Allocate(100);
  const absl::StatusOr<Buffer> none = SerialDevice::Allocate(0);

  ASSERT_OK(some);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(some->data()) % 64, 0u);
  ASSERT_OK(none);
  EXPECT_EQ(none->data(), nullptr);
}

TEST(SerialDeviceTest, MoreMemoryThanAnyMachineHasIsAnError) {
  EXPECT_THAT(SerialDevice::Allocate(size_t{1} << 41),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(SerialDeviceTest, ColumnsAreSummedRowByRow) {
  std::vector<float> sums = {9, 9};
  SerialDevice device;

  ASSERT_OK(device.SumColumns(
      "Op", 3, 2,
      [](int64_t row, int64_t column) {
        return static_cast<float>(10 * row + column);
      },
      sums.data()));

  EXPECT_THAT(sums, ElementsAre(30, 33));
}

// As many as a block of columns has and one more, and rows of several blocks.
TEST(SerialDeviceTest, EveryColumnIsSummedOverEveryRow) {
  constexpr int64_t kRows = 37;
  constexpr int64_t kColumns = 257;
  std::vector<double> sums(kColumns, 9);
  SerialDevice device;

  ASSERT_OK(device.SumColumns(
      "Op", kRows, kColumns,
      [](int64_t row, int64_t column) {
        return static_cast<double>(row * 1000 + column);
      },
      sums.data()));

  for (int64_t column = 0; column < kColumns; ++column) {
    EXPECT_EQ(sums[column], 1000 * kRows * (kRows - 1) / 2 + kRows * column);
  }
}

TEST(SerialDeviceTest, CopyIsCompleteWhenItHasBeenStarted) {
  const int from[2] = {1, 2};
  int to[2] = {};

  const absl::StatusOr<CopyId> copy =
      SerialDevice::StartCopy("Op", from, to, sizeof(from));

  ASSERT_OK(copy);
  EXPECT_TRUE(SerialDevice::CopyIsDone(*copy).value());
  EXPECT_THAT(to, ElementsAre(1, 2));
}

}  // namespace
}  // namespace lockstep::worker::cpu
