#include "server/shard/parts/locked_parts.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;

LockedParts TwoParts() {
  JobConfig job;
  job.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  return {job,
          {{"w", {6}, DType::kFloat32, {}}},
          {{0, 0, 4, DType::kFloat32}, {0, 4, 2, DType::kFloat32}},
          {{}},
          nullptr};
}

TEST(LockedPartsTest, SizesAndNamesAreThoseOfTheSlices) {
  const LockedParts parts = TwoParts();

  EXPECT_EQ(parts.num_parts(), 2);
  EXPECT_EQ(parts.size(0), 16u);
  EXPECT_EQ(parts.size(1), 8u);
  EXPECT_EQ(parts.num_tensors(0), 2);  // the value and its momentum
  EXPECT_EQ(parts.Name(1), "part 1 (\"w\")");
}

TEST(LockedPartsTest, PartThatDoesNotExistIsRefused) {
  const LockedParts parts = TwoParts();

  EXPECT_OK(parts.Check(1));
  for (int part : {-1, 2}) {
    EXPECT_THAT(parts.Check(part),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace lockstep::server
