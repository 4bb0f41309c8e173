#include "server/step/compatible/sparse_accumulator.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::Shape;
using ::lockstep::testing::Sparse;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::Values;
using ::lockstep::testing::Zeros;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Doubles = std::vector<double>;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

SparseSum::Options Declared(PartialShape shape,
                            Reduction reduction = Reduction::kMean,
                            SparseInput input = SparseInput::kAsSent) {
  return {DType::kFloat32, std::move(shape), reduction, input};
}

void Push(SparseAccumulator& accumulator, const Sparse& gradient) {
  ASSERT_OK(accumulator.Apply(0, gradient));
}

SparseGradient TakeAll(SparseAccumulator& accumulator) {
  auto taken = accumulator.Take(1, 1);
  EXPECT_OK(taken);
  if (!taken.ok() || taken->empty()) return {};
  return std::move(taken->front().gradient);
}

class SparseInputTest : public ::testing::TestWithParam<SparseInput> {};
INSTANTIATE_TEST_SUITE_P(Both, SparseInputTest,
                         ::testing::Values(SparseInput::kAsSent,
                                           SparseInput::kCanonical));

TEST_P(SparseInputTest, MeanIsPerRowAndSumIsASum) {
  const struct {
    Reduction reduction;
    Doubles values;
  } cases[] = {{Reduction::kMean, {.5, .5, 0, 2, 3, 0}},
               {Reduction::kSum, {1, 1, 0, 2, 3, 0}}};
  for (const auto& c : cases) {
    for (const PartialShape& shape :
         {PartialShape(std::nullopt), PartialShape(Shape{})}) {
      SparseAccumulator accumulator(Declared(shape, c.reduction, GetParam()));
      Push(accumulator, Sparse({0, 1}, {2, 2}, {1, 0, 0, 2}));
      Push(accumulator, Sparse({0, 2}, {2, 2}, {0, 1, 3, 0}, Shape{3, 2}));

      const SparseGradient taken = TakeAll(accumulator);

      EXPECT_THAT(taken.indices, ElementsAre(0, 1, 2));
      EXPECT_EQ(Values(taken), c.values);
      EXPECT_THAT(taken.values_shape, ElementsAre(3, 2));
      EXPECT_THAT(taken.dense_shape, ElementsAre(-1, 2));
    }
  }
}

TEST_P(SparseInputTest, EveryTypeHasAMean) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    SparseAccumulator accumulator(
        {dtype, Shape{3, 3}, Reduction::kMean, GetParam()});
    Push(accumulator, Sparse({1}, {1, 3}, {0, 1, 0}, Shape{3, 3}, dtype));
    Push(accumulator, Sparse({1}, {1, 3}, {0, 2, 0}, Shape{3, 3}, dtype));

    const SparseGradient mean = TakeAll(accumulator);

    EXPECT_THAT(mean.indices, ElementsAre(1));
    EXPECT_THAT(Values(mean), ElementsAre(0, 1.5, 0)) << DTypeName(dtype);
    EXPECT_THAT(mean.dense_shape, ElementsAre(3, 3));
  }
}

TEST_P(SparseInputTest, EmptyGradientCountsButDividesNothing) {
  SparseAccumulator accumulator(
      Declared(Shape{}, Reduction::kMean, GetParam()));
  Push(accumulator, Sparse({}, {0, 1}, {}));
  Push(accumulator, Sparse({2}, {1, 1}, {6}));
  Push(accumulator, Sparse({}, {0, 1}, {}));
  EXPECT_EQ(accumulator.num_accumulated(), 3);

  const SparseGradient taken = TakeAll(accumulator);

  EXPECT_THAT(taken.indices, ElementsAre(2));
  EXPECT_THAT(Values(taken), ElementsAre(6));
}

TEST_P(SparseInputTest, ShapeThatComesOutIsThatOfTheValues) {
  const struct {
    PartialShape declared;
    Shape values, result;
  } cases[] = {
      {Shape{2, -1}, {1, 2, 2, 2}, {2, 2, 2, 2}},
      {Shape{-1, 2}, {1, 2}, {-1, 2}},
      {Shape{5}, {1, 3}, {5, 3}},
      {Shape{}, {1}, {-1}},
      {std::nullopt, {1, 4}, {-1, 4}},
  };
  for (const auto& c : cases) {
    SparseAccumulator accumulator(
        Declared(c.declared, Reduction::kMean, GetParam()));
    Push(accumulator, Sparse({0}, c.values, Zeros(c.values)));
    EXPECT_EQ(TakeAll(accumulator).dense_shape, c.result);
  }
}

TEST_P(SparseInputTest, NothingOfATakeStaysForTheNext) {
  SparseAccumulator accumulator(
      Declared(std::nullopt, Reduction::kMean, GetParam()));
  Push(accumulator, Sparse({3}, {1, 2}, {1, 2}));
  TakeAll(accumulator);

  ASSERT_OK(accumulator.Apply(1, Sparse({4}, {1}, {7})));

  const SparseGradient taken = TakeAll(accumulator);
  EXPECT_THAT(taken.indices, ElementsAre(4));
  EXPECT_THAT(Values(taken), ElementsAre(7));
}

// Gradients for a variable declared as [2, 2, unknown], and what is wrong.
TEST_P(SparseInputTest, MalformedGradientIsRefused) {
  Sparse matrix_of_indices({0}, {1, 2, 2}, Doubles(4));
  matrix_of_indices.indices_rank = 2;
  Sparse scalar_index = matrix_of_indices;
  scalar_index.indices_rank = 0;
  const struct {
    Sparse gradient;
    const char* message;
  } cases[] = {
      {matrix_of_indices, "indices have rank 2"},
      {scalar_index, "indices have rank 0"},
      {Sparse({0}, {}, {1}), "values have rank 0"},
      {Sparse({0, 1}, {1, 2, 2}, Doubles(4)), "1 rows, must be 2"},
      {Sparse({0}, {1, 2, 2}, Doubles(4), Shape{2, 2}),
       "rank must be at least 3, got 2"},
      {Sparse({0}, {1, 2, 2}, Doubles(4), Shape{}), "got 0"},
      {Sparse({0}, {1, 2, 2}, Doubles(4), Shape{2, 3, 2}),
       "dimension 1 is 3, must be 2"},
      {Sparse({3}, {1, 2, 2}, Doubles(4)), "index is 3"},
      {Sparse({0}, {1, 2}, Doubles(2)), "rank must be at least 3, got 2"},
      {Sparse({0}, {1, 3, 2}, Doubles(6)), "dimension 1 is 3, must be 2"},
  };
  for (const auto& c : cases) {
    SparseAccumulator accumulator(
        Declared(Shape{2, 2, -1}, Reduction::kMean, GetParam()));
    EXPECT_THAT(accumulator.Apply(0, c.gradient),
                StatusIs(kInvalid, HasSubstr(c.message)));
    EXPECT_EQ(accumulator.num_accumulated(), 0);
  }
}

TEST_P(SparseInputTest, RowsMustBeLikeThoseOfTheSum) {
  SparseAccumulator accumulator(
      Declared(std::nullopt, Reduction::kMean, GetParam()));
  Push(accumulator, Sparse({}, {0, 2}, {}));
  for (const Shape& shape : {Shape{1, 3}, Shape{1}, Shape{1, 2, 1}}) {
    const Sparse gradient({0}, shape, Zeros(shape));
    EXPECT_THAT(accumulator.Apply(0, gradient), StatusIs(kInvalid));
  }
  EXPECT_EQ(accumulator.num_accumulated(), 1);
}

TEST_P(SparseInputTest, DeclaredRankZeroAcceptsAnyRows) {
  SparseAccumulator accumulator(
      Declared(Shape{}, Reduction::kMean, GetParam()));
  Push(accumulator, Sparse({0}, {1}, {1}));
  Push(accumulator, Sparse({0}, {1}, {1}, Shape{}));
  EXPECT_EQ(accumulator.num_accumulated(), 2);
}

struct Row {
  int64_t index;
  double value;
  bool operator==(const Row&) const = default;
};

std::vector<Row> MeanOf(SparseInput input, const Sparse& a, const Sparse& b) {
  SparseAccumulator accumulator(Declared(Shape{}, Reduction::kMean, input));
  Push(accumulator, a);
  Push(accumulator, b);
  const SparseGradient taken = TakeAll(accumulator);
  std::vector<Row> rows;
  for (size_t i = 0; i < taken.indices.size(); ++i) {
    rows.push_back({taken.indices[i], Values(taken)[i]});
  }
  return rows;
}

TEST(SparseAccumulatorTest, UnsortedRowsFailToPairUpAsInTensorFlow) {
  const Sparse a({5, 2}, {2}, {50, 20}), b({2, 5}, {2}, {2, 5});
  EXPECT_THAT(MeanOf(SparseInput::kAsSent, a, b),
              ElementsAre(Row{2, 2}, Row{5, 27.5}, Row{2, 20}));
  EXPECT_THAT(MeanOf(SparseInput::kCanonical, a, b),
              ElementsAre(Row{2, 11}, Row{5, 27.5}));
}

TEST(SparseAccumulatorTest, RepeatedRowsAreOneContributionWhenCanonical) {
  const Sparse a({1, 1}, {2}, {1, 2}), b({1}, {1}, {9});
  EXPECT_THAT(MeanOf(SparseInput::kAsSent, a, b),
              ElementsAre(Row{1, 5}, Row{1, 2}));
  EXPECT_THAT(MeanOf(SparseInput::kCanonical, a, b), ElementsAre(Row{1, 6}));
}

TEST(SparseAccumulatorTest, CanonicalInputHasNoNegativeOrTooLargeIndex) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const struct {
    PartialShape declared;
    Sparse gradient;
    bool as_sent_ok, canonical_ok;
  } cases[] = {
      {Shape{2}, Sparse({-1}, {1}, {1}), true, false},
      {Shape{2}, Sparse({2}, {1}, {1}), false, false},
      {Shape{2}, Sparse({1}, {1}, {1}), true, true},
      {Shape{}, Sparse({4}, {1}, {1}, Shape{4}), true, false},
      {Shape{}, Sparse({3}, {1}, {1}, Shape{4}), true, true},
      {Shape{}, Sparse({kLargest}, {1}, {1}), true, true},
      {std::nullopt, Sparse({0, -7}, {2}, {1, 1}), true, false},
  };
  for (const auto& c : cases) {
    SparseAccumulator as_sent(Declared(c.declared));
    SparseAccumulator canonical(
        Declared(c.declared, Reduction::kMean, SparseInput::kCanonical));
    EXPECT_EQ(as_sent.Apply(0, c.gradient).ok(), c.as_sent_ok);
    EXPECT_EQ(canonical.Apply(0, c.gradient).ok(), c.canonical_ok);
  }
}

TEST(SparseAccumulatorTest, CopiedSubnormalsStayAndComputedOnesDoNot) {
  const double tiny = std::numeric_limits<float>::min() / 4;
  SparseAccumulator accumulator(Declared(Shape{}, Reduction::kSum));
  Push(accumulator, Sparse({1, 2}, {2}, {tiny, tiny}));
  Push(accumulator, Sparse({2, 3}, {2}, {tiny, tiny}));

  EXPECT_THAT(Values(TakeAll(accumulator)), ElementsAre(tiny, 0, tiny));
}

}  // namespace
}  // namespace lockstep::server
