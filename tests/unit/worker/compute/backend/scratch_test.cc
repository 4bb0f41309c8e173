#include "worker/compute/backend/scratch.h"

#include <memory>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;

constexpr ElementType kFloat = ElementType::kFloat32;

class ScratchTest : public ::testing::Test {
 protected:
  std::unique_ptr<ComputeBackend> backend_ = *MakeBackend("cpu", {});
  Scratch scratch_;
};

TEST_F(ScratchTest, TensorIsOfTheShapeAskedFor) {
  const absl::StatusOr<Tensor> tensor =
      scratch_.Reserve(*backend_, ElementType::kFloat64, {3, 5});

  ASSERT_OK(tensor);
  EXPECT_EQ(tensor->type(), ElementType::kFloat64);
  EXPECT_EQ(tensor->shape(), Shape({3, 5}));
}

TEST_F(ScratchTest, SmallerTensorReusesTheMemory) {
  const Tensor large = *scratch_.Reserve(*backend_, kFloat, {100});

  const Tensor small = *scratch_.Reserve(*backend_, kFloat, {7, 3});
  const Tensor again = *scratch_.Reserve(*backend_, kFloat, {100});

  EXPECT_EQ(small.raw(), large.raw());
  EXPECT_EQ(again.raw(), large.raw());
}

TEST_F(ScratchTest, LargerTensorCanBeWrittenToItsEnd) {
  ASSERT_OK(scratch_.Reserve(*backend_, kFloat, {1}));

  const Tensor large = *scratch_.Reserve(*backend_, kFloat, {1000});
  large.data<float>()[999] = 1;

  EXPECT_EQ(large.data<float>()[999], 1);
}

TEST_F(ScratchTest, AnotherBackendGetsMemoryOfItsOwn) {
  const std::unique_ptr<ComputeBackend> other = *MakeBackend("cpu", {});
  const Tensor first = *scratch_.Reserve(*backend_, kFloat, {100});
  first.data<float>()[0] = 1;

  const Tensor second = *scratch_.Reserve(*other, kFloat, {100});
  second.data<float>()[0] = 2;

  EXPECT_EQ(second.data<float>()[0], 2);
}

TEST_F(ScratchTest, EmptyTensorNeedsNoMemory) {
  EXPECT_OK(scratch_.Reserve(*backend_, kFloat, {0, 5}));
}

TEST_F(ScratchTest, ImpossibleShapeIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;

  EXPECT_THAT(scratch_.Reserve(*backend_, kFloat, {-1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(scratch_.Reserve(*backend_, kFloat, {kHuge, 4}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(scratch_.Reserve(*backend_, ElementType::kFloat64, {kHuge}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ScratchTest, FailureLeavesTheLastTensorGood) {
  const Tensor small = *scratch_.Reserve(*backend_, kFloat, {2});
  small.data<float>()[1] = 5;

  EXPECT_THAT(scratch_.Reserve(*backend_, kFloat, {int64_t{1} << 50}),
              StatusIs(absl::StatusCode::kResourceExhausted));

  EXPECT_EQ(small.data<float>()[1], 5);
}

}  // namespace
}  // namespace lockstep::worker
