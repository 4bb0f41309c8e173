#include "worker/compute/tensor/tensor.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/tensor/buffer.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 40;

TEST(ShapeTest, TextListsDimensions) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText({3, 2}), "[3,2]");
}

TEST(ShapeTest, ElementsAreTheProduct) {
  EXPECT_THAT(CountElements({}), IsOkAndHolds(1));
  EXPECT_THAT(CountElements({3, 2, 5}), IsOkAndHolds(30));
  EXPECT_THAT(CountElements({3, 0, 5}), IsOkAndHolds(0));
}

TEST(ShapeTest, NegativeDimensionIsRefused) {
  EXPECT_THAT(CountElements({3, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("shape [3,-1] must have dimensions >= 0")));
}

TEST(ShapeTest, ProductThatOverflowsIsRefusedEvenBesideAZero) {
  EXPECT_THAT(CountElements({kHuge, kHuge}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CountElements({0, kHuge, kHuge}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TensorTest, DefaultIsEmpty) {
  const Tensor tensor;

  EXPECT_EQ(tensor.size(), 0);
  EXPECT_EQ(tensor.bytes(), 0u);
}

TEST(TensorTest, ViewWrapsMemoryOfOthersWithoutCopy) {
  std::vector<double> values = {1, 2, 3, 4, 5, 6};

  const Tensor tensor = Tensor::Of<double>(absl::MakeSpan(values), {2, 3});
  tensor.data<double>()[4] = 50;

  EXPECT_EQ(tensor.type(), ElementType::kFloat64);
  EXPECT_EQ(tensor.rank(), 2u);
  EXPECT_EQ(tensor.dim(1), 3);
  EXPECT_EQ(tensor.size(), 6);
  EXPECT_EQ(tensor.bytes(), 48u);
  EXPECT_EQ(tensor.raw(), values.data());
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 50, 6));
}

TEST(TensorTest, ReadOnlyViewSharesTheMemoryOfItsTensor) {
  std::vector<float> values = {1, 2};
  const Tensor tensor = Tensor::Of<float>(absl::MakeSpan(values), {2});

  const ConstTensor view = tensor;

  EXPECT_EQ(view.data<float>(), values.data());
  EXPECT_EQ(view.shape(), tensor.shape());
}

TEST(TensorTest, ReshapedKeepsElements) {
  std::vector<float> values = {1, 2, 3, 4};
  const Tensor tensor = Tensor::Of<float>(absl::MakeSpan(values), {2, 2});

  EXPECT_EQ(tensor.Reshaped({4}).raw(), values.data());
  EXPECT_EQ(tensor.Reshaped({4, 1}).shape(), Shape({4, 1}));
}

TEST(BufferTest, ReleasesOnceWhenItsLastOwnerDies) {
  static int released = 0;
  released = 0;
  int memory = 0;
  {
    Buffer first(&memory, sizeof(memory), [](void*) { ++released; });
    const Buffer second = std::move(first);
    EXPECT_EQ(second.data(), &memory);
    EXPECT_EQ(released, 0);
  }

  EXPECT_EQ(released, 1);
}

TEST(BufferTest, DefaultOwnsNothing) {
  const Buffer buffer;

  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.bytes(), 0u);
}

}  // namespace
}  // namespace lockstep::worker
