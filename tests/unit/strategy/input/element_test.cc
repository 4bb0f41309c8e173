#include "strategy/input/element.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value Ints(std::vector<int64_t> shape, const std::vector<int64_t>& numbers) {
  return Value::Of(ElementType::kInt64, std::move(shape), numbers);
}

TEST(ElementTest, ABatchIsCutAndJoinedAlongItsExamples) {
  const Element batch = {Ints({3}, {1, 2, 3}),
                         Ints({3, 2}, {1, 1, 2, 2, 3, 3})};
  EXPECT_THAT(CountExamples(batch), IsOkAndHolds(3));
  const Element last = {Ints({2}, {2, 3}), Ints({2, 2}, {2, 2, 3, 3})};
  EXPECT_THAT(ExamplesOf(batch, 1, 2), IsOkAndHolds(last));
  const Element none = {Ints({0}, {}), Ints({0, 2}, {})};
  EXPECT_THAT(EmptyLike(batch), IsOkAndHolds(none));
  EXPECT_THAT(JoinBatches({*ExamplesOf(batch, 0, 1), none, last}),
              IsOkAndHolds(batch));
}

TEST(ElementTest, ExamplesBecomeABatch) {
  EXPECT_THAT(StackExamples({{Ints({}, {4})}, {Ints({}, {5})}}),
              IsOkAndHolds(Element{Ints({2}, {4, 5})}));
}

TEST(ElementTest, ExamplesOfOtherShapesAreNamedAsTheyAre) {
  EXPECT_THAT(StackExamples({{Ints({2}, {4, 4})}, {Ints({1}, {5})}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensor 0 of element 1 of a batch is int64 "
                                 "[1], that of element 0 int64 [2]")));
}

TEST(ElementTest, ABatchWithFewerElementsThanItsShapeIsRefused) {
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("a value of shape [4] has 2 elements"));
  EXPECT_THAT(CountExamples({Ints({4}, {1, 2})}), refused);
  EXPECT_THAT(EmptyLike({Ints({4}, {1, 2})}), refused);
}

TEST(ElementTest, WithoutDataDimensionsThatMayDifferAreZeroOrElseTheFirst) {
  const auto shape_of = [](std::vector<int64_t> shape) {
    const Value like = *Value::Zeros(ElementType::kInt32, std::move(shape));
    return NoExamples({like})->at(0).shape();
  };
  EXPECT_THAT(shape_of({3, 2}), ElementsAre(0, 2));
  EXPECT_THAT(shape_of({0, 2}), ElementsAre(0, 2));
  EXPECT_THAT(shape_of({3, 0}), ElementsAre(3, 0));
  EXPECT_THAT(shape_of({}), ElementsAre());
  EXPECT_THAT(*NoExamples({Value::Scalar(4)}), ElementsAre(Value::Scalar(0)));
}

TEST(ElementTest, AScalarIsNoBatch) {
  EXPECT_THAT(CountExamples({Ints({}, {4})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("batch the data set")));
  EXPECT_THAT(CountExamples({Ints({1}, {4}), Ints({2}, {4, 5})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 and 2 examples")));
}

}  // namespace
}  // namespace lockstep::strategy
