#include "worker/compute/backend/indices.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/cpu/cpu_backend.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;

// The CPU as if its memory were elsewhere.
class FarBackend : public CpuBackend {
 public:
  bool UsesOrdinaryMemory() const override { return false; }
};

class IndicesTest : public ::testing::Test {
 protected:
  absl::StatusOr<ConstTensor> Stage(ComputeBackend& backend, int64_t bound) {
    return StageIndices("ids", ConstTensor::Of<int32_t>(numbers_, {2, 1}),
                        bound, backend, memory_);
  }

  std::vector<int32_t> numbers_ = {4, 0};
  const std::unique_ptr<CpuBackend> near_ = *CpuBackend::Make({});
  FarBackend far_;
  Scratch memory_;
};

TEST_F(IndicesTest, OrdinaryMemoryIsUsedAsItIs) {
  const absl::StatusOr<ConstTensor> ids = Stage(*near_, 5);

  ASSERT_OK(ids);
  EXPECT_EQ(ids->raw(), numbers_.data());
  EXPECT_EQ(ids->bound(), 5);
}

TEST_F(IndicesTest, NumbersAreCopiedToTheDevice) {
  const absl::StatusOr<ConstTensor> ids = Stage(far_, 5);
  numbers_[0] = 9;

  ASSERT_OK(ids);
  EXPECT_EQ(ids->shape(), Shape({2, 1}));
  EXPECT_EQ(ids->data<int32_t>()[0], 4);
  EXPECT_EQ(ids->bound(), 5);
}

TEST_F(IndicesTest, NumberOutOfRangeIsNamed) {
  EXPECT_THAT(Stage(far_, 4), StatusIs(absl::StatusCode::kInvalidArgument,
                                       "ids[0] must be in [0, 4), got 4"));
  numbers_[1] = -1;
  EXPECT_THAT(Stage(*near_, 5), StatusIs(absl::StatusCode::kInvalidArgument,
                                         "ids[1] must be in [0, 5), got -1"));
}

TEST_F(IndicesTest, OtherTypesAreRefused) {
  const std::vector<float> floats = {0};

  EXPECT_THAT(StageIndices("ids", ConstTensor::Of<float>(floats, {1}), 5, far_,
                           memory_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "ids must be int32, got float32"));
}

}  // namespace
}  // namespace lockstep::worker
