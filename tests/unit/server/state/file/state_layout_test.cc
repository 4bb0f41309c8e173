#include "server/state/file/state_layout.h"

#include <limits>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

PartSpec Floats(int64_t count) { return {0, 0, count, DType::kFloat32}; }

StateLayout Layout(std::vector<PartSpec> parts, size_t slots, int buffers) {
  std::vector<size_t> tensors(parts.size(), slots + 1);
  auto layout =
      StateLayout::Make(std::move(parts), std::move(tensors), buffers);
  EXPECT_OK(layout);
  return *std::move(layout);
}

TEST(StateLayoutTest, RegionsFollowTheHeaderAtHugePages) {
  const StateLayout layout = Layout({Floats(10)}, 1, 2);

  EXPECT_EQ(layout.num_tensors(0), 2u);
  EXPECT_EQ(layout.TensorSize(0), 40u);
  EXPECT_EQ(layout.TensorOffset(0, 0, 0), 2 * kMiB);
  EXPECT_EQ(layout.TensorOffset(0, 1, 0), 4 * kMiB);
  EXPECT_EQ(layout.TensorOffset(0, 0, 1), 6 * kMiB);
  EXPECT_EQ(layout.TensorOffset(0, 1, 1), 8 * kMiB);
  EXPECT_EQ(layout.file_size(), 10 * kMiB + 16);
}

TEST(StateLayoutTest, PartsStartAtCacheLines) {
  const StateLayout layout =
      Layout({Floats(1), Floats(17), {0, 0, 3, DType::kFloat64}}, 0, 1);

  EXPECT_EQ(layout.TensorOffset(0, 0, 0), 2 * kMiB);
  EXPECT_EQ(layout.TensorOffset(1, 0, 0), 2 * kMiB + 64);
  EXPECT_EQ(layout.TensorOffset(2, 0, 0), 2 * kMiB + 64 + 128);
  EXPECT_EQ(layout.TensorSize(2), 24u);
}

TEST(StateLayoutTest, InPlaceHasNoSecondBuffer) {
  EXPECT_EQ(Layout({Floats(10)}, 2, 1).file_size(), (2 + 3 * 2) * kMiB + 16);
}

TEST(StateLayoutTest, PartsWithoutATensorTakeNoRoomInItsRegion) {
  const auto layout = StateLayout::Make(
      {Floats(1 << 19), Floats(10), Floats(10)}, {1, 3, 2}, 2);

  ASSERT_OK(layout);
  EXPECT_EQ(layout->TensorOffset(1, 1, 0), 6 * kMiB);
  EXPECT_EQ(layout->TensorOffset(2, 1, 0), 6 * kMiB + 64);
  EXPECT_EQ(layout->TensorOffset(1, 2, 0), 8 * kMiB);
  EXPECT_EQ(layout->TensorOffset(0, 0, 1), 10 * kMiB);
  EXPECT_EQ(layout->file_size(), 18 * kMiB + 3 * 16);
}

TEST(StateLayoutTest, NoTwoTensorsOverlap) {
  const StateLayout layout =
      Layout({Floats(600000), Floats(3), {0, 0, 70001, DType::kFloat64}}, 2, 2);

  std::map<uint64_t, uint64_t> tensors;  // size by offset
  for (size_t part = 0; part < 3; ++part) {
    for (size_t tensor = 0; tensor < 3; ++tensor) {
      for (int buffer = 0; buffer < 2; ++buffer) {
        tensors[layout.TensorOffset(part, tensor, buffer)] =
            layout.TensorSize(part);
      }
    }
  }

  ASSERT_EQ(tensors.size(), 18u);
  uint64_t end = StateLayout::kHeaderSize;
  for (const auto& [offset, size] : tensors) {
    EXPECT_GE(offset, end);
    EXPECT_EQ(offset % StateLayout::kPartAlignment, 0u);
    end = offset + size;
  }
  EXPECT_LE(end, layout.file_size());
}

TEST(StateLayoutTest, PartsOutOfRangeAreRefused) {
  for (const PartSpec& part :
       {PartSpec{-1, 0, 1, DType::kFloat32},
        PartSpec{0, -1, 1, DType::kFloat32}, PartSpec{0, 0, 0, DType::kFloat32},
        PartSpec{0, 0, -5, DType::kFloat32},
        PartSpec{0, kMax, 1, DType::kFloat32}}) {
    EXPECT_THAT(
        StateLayout::Make({Floats(1), part}, {2, 2}, 2),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("part 1")));
  }
}

TEST(StateLayoutTest, NothingToHoldIsRefused) {
  EXPECT_THAT(StateLayout::Make({}, {}, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(StateLayout::Make({Floats(1)}, {2, 2}, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (const int buffers : {-1, 0, 3}) {
    EXPECT_THAT(StateLayout::Make({Floats(1)}, {2}, buffers),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(StateLayoutTest, SizesThatOverflowAreRefused) {
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fewer"));

  EXPECT_THAT(StateLayout::Make({Floats(kMax)}, {1}, 1), is_refused);
  EXPECT_THAT(StateLayout::Make({Floats(kMax / 4)}, {1}, 1), is_refused);
  EXPECT_THAT(StateLayout::Make({Floats(kMax / 16)}, {3}, 2), is_refused);
  EXPECT_THAT(
      StateLayout::Make({Floats(kMax / 8), Floats(kMax / 8)}, {1, 1}, 1),
      is_refused);
  EXPECT_OK(StateLayout::Make({Floats(kMax / 32)}, {3}, 2));
}

TEST(LayoutHashTest, EveryFieldCounts) {
  const VariableSpec variable = {"w", {3, 2}, DType::kFloat32, {}};
  const PartSpec part = {0, 0, 6, DType::kFloat32};
  const auto hash = [](const VariableSpec& v, const PartSpec& p, size_t slots,
                       int buffers) {
    return LayoutHash({v}, Layout({p}, slots, buffers));
  };
  const uint64_t original = hash(variable, part, 1, 2);

  VariableSpec renamed = variable;
  renamed.name = "v";
  VariableSpec reshaped = variable;
  reshaped.shape = {2, 3};
  VariableSpec wider = variable;
  wider.dtype = DType::kFloat64;

  EXPECT_EQ(hash(variable, part, 1, 2), original);
  EXPECT_NE(hash(renamed, part, 1, 2), original);
  EXPECT_NE(hash(reshaped, part, 1, 2), original);
  EXPECT_NE(hash(wider, part, 1, 2), original);
  EXPECT_NE(hash(variable, {1, 0, 6, DType::kFloat32}, 1, 2), original);
  EXPECT_NE(hash(variable, {0, 1, 6, DType::kFloat32}, 1, 2), original);
  EXPECT_NE(hash(variable, {0, 0, 5, DType::kFloat32}, 1, 2), original);
  EXPECT_NE(hash(variable, {0, 0, 6, DType::kFloat64}, 1, 2), original);
  EXPECT_NE(hash(variable, part, 2, 2), original);
  EXPECT_NE(hash(variable, part, 1, 1), original);
}

TEST(StateLayoutTest, EachPartHasTwoCountersAtTheEnd) {
  for (const int buffers : {1, 2}) {
    const StateLayout layout = Layout({Floats(3), Floats(5)}, 1, buffers);
    const uint64_t first = layout.CounterOffset(0, 0);
    EXPECT_EQ(first % 8, 0u);
    EXPECT_GE(first, layout.TensorOffset(1, 1, buffers - 1) + 20);
    EXPECT_EQ(layout.CounterOffset(0, 1), first + 8);
    EXPECT_EQ(layout.CounterOffset(1, 0), first + 16);
    EXPECT_EQ(layout.file_size(), first + 32);
  }
}

TEST(StateLayoutTest, GrowingTablesHaveADirectoryBehindAllTensors) {
  const PartSpec table{0, 0, 8, DType::kFloat32, 2, 1};
  PartSpec growing = table;
  growing.grows = true;
  const StateLayout layout = Layout({table, growing, Floats(3)}, 0, 2);
  EXPECT_EQ(layout.DirectorySize(1), 8u * (1 + 4));
  EXPECT_GE(layout.DirectoryOffset(1), layout.LogOffset(1) + layout.LogSize(1));
  EXPECT_EQ(layout.DirectoryOffset(1) % 64, 0u);
  EXPECT_GE(layout.CounterOffset(0, 0),
            layout.DirectoryOffset(1) + layout.DirectorySize(1));
  EXPECT_NE(LayoutHash({}, Layout({table}, 0, 2)),
            LayoutHash({}, Layout({growing}, 0, 2)));
}

TEST(StateLayoutTest, OnlyTablesWithTwoBuffersGrow) {
  const auto invalid =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("grows"));
  PartSpec growing{0, 0, 8, DType::kFloat32, 2, 1, true};
  EXPECT_THAT(StateLayout::Make({growing}, {1}, 1), invalid);
  growing.row_width = 0;
  EXPECT_THAT(StateLayout::Make({growing}, {1}, 2), invalid);
}

}  // namespace
}  // namespace lockstep::server
