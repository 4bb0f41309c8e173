#include "server/step/compatible/gradient_accumulator.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::Dense;
using ::lockstep::testing::Scalar;
using ::lockstep::testing::Shape;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::Values;
using ::lockstep::testing::Zeros;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Doubles = std::vector<double>;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const DenseSum::Options kScalar{DType::kFloat32, Shape{1}, Reduction::kMean};
const DenseSum::Options kAnyShape{DType::kFloat32, std::nullopt,
                                  Reduction::kMean};

void Push(GradientAccumulator& accumulator, int64_t step, const Dense& value) {
  const auto applied = accumulator.Apply(step, value);
  ASSERT_OK(applied);
  ASSERT_EQ(applied->outcome, ApplyOutcome::kAccepted);
}

DenseGradient TakeOne(GradientAccumulator& accumulator) {
  auto taken = accumulator.Take(1, 1);
  EXPECT_OK(taken);
  if (!taken.ok() || taken->empty()) return {};
  return std::move(taken->front().gradient);
}

TEST(GradientAccumulatorTest, EveryTypeHasAMean) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    GradientAccumulator accumulator({dtype, Shape{1}, Reduction::kMean});
    for (int i = 0; i < 10; ++i) Push(accumulator, 0, Scalar(i, dtype));

    const DenseGradient mean = TakeOne(accumulator);

    EXPECT_EQ(mean.dtype, dtype);
    EXPECT_THAT(Values(mean), ElementsAre(4.5)) << DTypeName(dtype);
  }
}

TEST(GradientAccumulatorTest, AccumulatorsAreIndependent) {
  GradientAccumulator a(kScalar);
  GradientAccumulator b(kScalar);
  Push(a, 0, Scalar(10));
  Push(b, 0, Scalar(11));

  EXPECT_THAT(Values(TakeOne(a)), ElementsAre(10));
  EXPECT_THAT(Values(TakeOne(b)), ElementsAre(11));
}

// Gradients stamped 0, then gradients stamped 1: what each step hands out.
TEST(GradientAccumulatorTest, StepsHandOutMeanOrSum) {
  const struct {
    Reduction reduction;
    Doubles first, second;
    double first_result, second_result;
  } cases[] = {
      {Reduction::kMean, {10, 20}, {10, 20}, 15, 15},
      {Reduction::kSum, {10, 20}, {10, 20}, 30, 30},
      {Reduction::kMean, {10, 20}, {20, 30}, 15, 25},
      {Reduction::kSum, {10, 20}, {20, 30}, 30, 50},
  };
  for (const auto& c : cases) {
    GradientAccumulator accumulator({DType::kFloat32, Shape{1}, c.reduction});
    for (double value : c.first) Push(accumulator, 0, Scalar(value));
    EXPECT_THAT(Values(TakeOne(accumulator)), ElementsAre(c.first_result));
    for (double value : c.second) Push(accumulator, 1, Scalar(value));
    EXPECT_THAT(Values(TakeOne(accumulator)), ElementsAre(c.second_result));
  }
}

TEST(GradientAccumulatorTest, DeclaredAndUndeclaredShapesGiveTheSameMean) {
  const Dense one({3, 2}, {1, 2, 3, 4, 5, 6});
  const Dense ten({3, 2}, {10, 20, 30, 40, 50, 60});
  for (const PartialShape& declared :
       {PartialShape(Shape{3, 2}), PartialShape(Shape{-1, 2}),
        PartialShape(std::nullopt)}) {
    GradientAccumulator accumulator(
        {DType::kFloat32, declared, Reduction::kMean});
    Push(accumulator, 0, one);
    Push(accumulator, 0, ten);

    const DenseGradient mean = TakeOne(accumulator);

    EXPECT_THAT(mean.shape, ElementsAre(3, 2));
    EXPECT_THAT(Values(mean), ElementsAre(5.5, 11, 16.5, 22, 27.5, 33));
  }
}

TEST(GradientAccumulatorTest, WrongShapeIsRefused) {
  GradientAccumulator accumulator(
      {DType::kFloat32, Shape{3, 2}, Reduction::kMean});
  for (const Shape& shape : {Shape{2, 2}, Shape{3, 1}, Shape{3, 2, 1}}) {
    const Dense gradient(shape, Zeros(shape));
    EXPECT_THAT(accumulator.Apply(0, gradient),
                StatusIs(kInvalid, HasSubstr("[3,2]")));
  }
}

TEST(GradientAccumulatorTest, FirstGradientFixesTheShapeUntilTheTake) {
  GradientAccumulator accumulator(kAnyShape);
  Push(accumulator, 0, Dense({3, 2}, Doubles(6)));
  for (const Shape& shape : {Shape{2, 2}, Shape{3, 1}}) {
    EXPECT_THAT(accumulator.Apply(0, Dense(shape, Zeros(shape))),
                StatusIs(kInvalid, HasSubstr("already summed")));
  }
  EXPECT_EQ(accumulator.num_accumulated(), 1);

  TakeOne(accumulator);

  Push(accumulator, 1, Dense({2, 2}, Doubles(4)));
  EXPECT_THAT(TakeOne(accumulator).shape, ElementsAre(2, 2));
}

TEST(GradientAccumulatorTest, ScalarsAndNoElementsAreShapesToo) {
  GradientAccumulator accumulator(kAnyShape);
  Push(accumulator, 0, Dense({}, {3}));
  const DenseGradient scalar = TakeOne(accumulator);
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_THAT(Values(scalar), ElementsAre(3));

  Push(accumulator, 1, Dense({0, 4}, {}));
  Push(accumulator, 1, Dense({0, 4}, {}));
  EXPECT_THAT(TakeOne(accumulator).shape, ElementsAre(0, 4));
}

TEST(GradientAccumulatorTest, SumsInOrderOfArrivalAndRoundsEachTime) {
  GradientAccumulator accumulator({DType::kFloat32, Shape{1}, Reduction::kSum});
  const Doubles gradients = {1, 1e8, -1e8, 1};
  for (double value : gradients) Push(accumulator, 0, Scalar(value));

  EXPECT_THAT(Values(TakeOne(accumulator)), ElementsAre(1));
}

TEST(GradientAccumulatorTest, HalfOverflowsInItsOwnType) {
  GradientAccumulator accumulator(
      {DType::kFloat16, Shape{1}, Reduction::kMean});
  for (int i = 0; i < 2; ++i) {
    Push(accumulator, 0, Scalar(65504, DType::kFloat16));
  }
  EXPECT_THAT(Values(TakeOne(accumulator)),
              ElementsAre(std::numeric_limits<double>::infinity()));
}

TEST(GradientAccumulatorTest, NotANumberIsAddedLikeAnything) {
  GradientAccumulator accumulator(kScalar);
  Push(accumulator, 0, Scalar(1));
  Push(accumulator, 0, Scalar(std::nan("")));

  EXPECT_TRUE(std::isnan(Values(TakeOne(accumulator)).at(0)));
}

TEST(GradientAccumulatorTest, CopiedSubnormalsStayAndComputedOnesDoNot) {
  const double tiny = std::numeric_limits<float>::min() / 4;
  const struct {
    Reduction reduction;
    Doubles gradients;
    double result;
  } cases[] = {
      {Reduction::kSum, {tiny}, tiny},
      {Reduction::kSum, {tiny, tiny}, 0},
      {Reduction::kMean, {tiny}, 0},
  };
  for (const auto& c : cases) {
    GradientAccumulator accumulator({DType::kFloat32, Shape{1}, c.reduction});
    for (double value : c.gradients) Push(accumulator, 0, Scalar(value));
    EXPECT_THAT(Values(TakeOne(accumulator)), ElementsAre(c.result));
  }
}

}  // namespace
}  // namespace lockstep::server
