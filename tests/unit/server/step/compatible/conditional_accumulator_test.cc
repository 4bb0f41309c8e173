// What dense and sparse accumulators have in common: time step, staleness, and
// takes that wait.
#include "server/step/compatible/conditional_accumulator.h"

#include <atomic>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/compatible/gradient_accumulator.h"
#include "server/step/compatible/sparse_accumulator.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/gradient_builder.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::Scalar;
using ::lockstep::testing::Shape;
using ::lockstep::testing::Sparse;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::Values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kCancelled = absl::StatusCode::kCancelled;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct DenseCase {
  using Accumulator = GradientAccumulator;
  static Accumulator::Options Declared() {
    return {DType::kFloat32, Shape{1}, Reduction::kMean};
  }
  static auto Gradient(double value) { return Scalar(value); }
  static auto WrongShape() { return testing::Dense({2}, {1, 2}); }
};

struct SparseCase {
  using Accumulator = SparseAccumulator;
  static Accumulator::Options Declared() {
    return {DType::kFloat32, Shape{9, 1}, Reduction::kMean,
            SparseInput::kCanonical};
  }
  static auto Gradient(double value) { return Sparse({4}, {1, 1}, {value}); }
  static auto WrongShape() { return Sparse({4}, {1, 2}, {1, 2}); }
};

template <typename Case>
class ConditionalAccumulatorTest : public ::testing::Test {
 protected:
  using Accumulator = typename Case::Accumulator;
  using Completed = typename Accumulator::Completed;

  typename Accumulator::Applied Push(int64_t step, double value) {
    auto applied = accumulator_.Apply(step, Case::Gradient(value));
    EXPECT_OK(applied);
    return std::move(applied).value_or(typename Accumulator::Applied{});
  }
  std::vector<Completed> Take(uint64_t id, int64_t n) {
    auto completed = accumulator_.Take(id, n);
    EXPECT_OK(completed);
    return std::move(completed).value_or(std::vector<Completed>{});
  }

  Accumulator accumulator_{Case::Declared()};
};

using Cases = ::testing::Types<DenseCase, SparseCase>;
TYPED_TEST_SUITE(ConditionalAccumulatorTest, Cases);

TYPED_TEST(ConditionalAccumulatorTest, StartsEmptyAtStepZero) {
  EXPECT_EQ(this->accumulator_.num_accumulated(), 0);
  EXPECT_EQ(this->accumulator_.step(), 0);
}

TYPED_TEST(ConditionalAccumulatorTest, AcceptsItsStepAndLaterOnes) {
  EXPECT_EQ(this->Push(0, 1).outcome, ApplyOutcome::kAccepted);
  EXPECT_EQ(this->Push(7, 1).outcome, ApplyOutcome::kAccepted);
  EXPECT_EQ(this->accumulator_.num_accumulated(), 2);
}

TYPED_TEST(ConditionalAccumulatorTest, StaleGradientChangesNothingAndIsTold) {
  this->accumulator_.SetGlobalStep(5);

  const auto applied = this->Push(4, 1);

  EXPECT_EQ(applied.outcome, ApplyOutcome::kStale);
  EXPECT_EQ(applied.step, 5);
  EXPECT_EQ(this->accumulator_.num_accumulated(), 0);
}

TYPED_TEST(ConditionalAccumulatorTest, StalenessComesBeforeTheShape) {
  this->accumulator_.SetGlobalStep(1);

  const auto stale = this->accumulator_.Apply(0, TypeParam::WrongShape());
  const auto fresh = this->accumulator_.Apply(1, TypeParam::WrongShape());

  ASSERT_OK(stale);
  EXPECT_EQ(stale->outcome, ApplyOutcome::kStale);
  EXPECT_THAT(fresh, StatusIs(kInvalid));
  EXPECT_EQ(this->accumulator_.num_accumulated(), 0);
}

TYPED_TEST(ConditionalAccumulatorTest, BrokenGradientIsRefusedEvenIfStale) {
  this->accumulator_.SetGlobalStep(1);
  auto truncated = TypeParam::Gradient(1);
  truncated.values.pop_back();
  auto other_type = TypeParam::Gradient(1);
  other_type.dtype = DType::kFloat16;

  EXPECT_THAT(this->accumulator_.Apply(0, truncated), StatusIs(kInvalid));
  EXPECT_THAT(this->accumulator_.Apply(0, other_type), StatusIs(kInvalid));
}

TYPED_TEST(ConditionalAccumulatorTest, RefusedGradientLeavesTheSumAsItWas) {
  this->Push(0, 3);
  EXPECT_THAT(this->accumulator_.Apply(0, TypeParam::WrongShape()),
              StatusIs(kInvalid));

  const auto taken = this->Take(1, 1);

  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].num_gradients, 1);
  EXPECT_THAT(Values(taken[0].gradient), ElementsAre(3));
}

TYPED_TEST(ConditionalAccumulatorTest, TakeConsumesAllAndMovesTheStep) {
  for (double value : {1, 2, 3, 6}) this->Push(0, value);

  const auto taken = this->Take(1, 2);

  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_OK(taken[0].status);
  EXPECT_EQ(taken[0].id, 1u);
  EXPECT_EQ(taken[0].num_gradients, 4);
  EXPECT_EQ(taken[0].step, 1);
  EXPECT_THAT(Values(taken[0].gradient), ElementsAre(3));
  EXPECT_EQ(this->accumulator_.num_accumulated(), 0);
  EXPECT_EQ(this->accumulator_.step(), 1);
  EXPECT_EQ(this->Push(0, 9).outcome, ApplyOutcome::kStale);
}

TYPED_TEST(ConditionalAccumulatorTest, TakeOfFewerThanOneIsRefused) {
  for (int64_t n :
       {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(this->accumulator_.Take(1, n),
                StatusIs(kInvalid, HasSubstr("at least 1")));
  }
  EXPECT_THAT(this->Push(0, 1).completed, IsEmpty());
}

TYPED_TEST(ConditionalAccumulatorTest, WaitingTakeIsEndedByTheLastGradient) {
  EXPECT_THAT(this->Take(8, 3), IsEmpty());
  EXPECT_THAT(this->Push(0, 10).completed, IsEmpty());
  EXPECT_THAT(this->Push(0, 20).completed, IsEmpty());

  const auto applied = this->Push(0, 30);

  EXPECT_EQ(applied.outcome, ApplyOutcome::kAccepted);
  EXPECT_EQ(applied.step, 1);
  ASSERT_THAT(applied.completed, SizeIs(1));
  EXPECT_EQ(applied.completed[0].id, 8u);
  EXPECT_THAT(Values(applied.completed[0].gradient), ElementsAre(20));
}

TYPED_TEST(ConditionalAccumulatorTest, QueuedTakesAreServedOneStepEach) {
  for (uint64_t id = 1; id <= 10; ++id)
    EXPECT_THAT(this->Take(id, 1), IsEmpty());

  for (uint64_t id = 1; id <= 10; ++id) {
    const auto applied = this->Push(static_cast<int64_t>(id) - 1, 1);
    ASSERT_THAT(applied.completed, SizeIs(1));
    EXPECT_EQ(applied.completed[0].id, id);
  }
}

TYPED_TEST(ConditionalAccumulatorTest, IdThatWaitsCannotWaitTwice) {
  this->Take(1, 2);
  EXPECT_THAT(this->accumulator_.Take(1, 1),
              StatusIs(kInvalid, HasSubstr("id 1")));
}

TYPED_TEST(ConditionalAccumulatorTest, CancelledHeadReleasesThoseBehindIt) {
  this->Take(1, 5);
  this->Take(2, 1);
  EXPECT_THAT(this->Push(0, 4).completed, IsEmpty());

  const auto completed = this->accumulator_.Cancel(1);

  ASSERT_THAT(completed, SizeIs(2));
  EXPECT_EQ(completed[0].id, 1u);
  EXPECT_THAT(completed[0].status,
              StatusIs(kCancelled, HasSubstr("was cancelled")));
  EXPECT_EQ(completed[1].id, 2u);
  EXPECT_THAT(Values(completed[1].gradient), ElementsAre(4));
}

TYPED_TEST(ConditionalAccumulatorTest, CancelMovesNeitherStepNorCount) {
  this->Push(0, 1);
  this->Take(1, 2);

  EXPECT_THAT(this->accumulator_.Cancel(1), SizeIs(1));
  EXPECT_THAT(this->accumulator_.Cancel(1), IsEmpty());
  EXPECT_THAT(this->accumulator_.Cancel(99), IsEmpty());

  EXPECT_EQ(this->accumulator_.num_accumulated(), 1);
  EXPECT_EQ(this->accumulator_.step(), 0);
}

TYPED_TEST(ConditionalAccumulatorTest, SetGlobalStepTellsWhenItWentBackwards) {
  const auto forward = this->accumulator_.SetGlobalStep(5);
  EXPECT_EQ(forward.previous, 0);
  EXPECT_FALSE(forward.went_backwards);

  const auto backward = this->accumulator_.SetGlobalStep(3);

  EXPECT_EQ(backward.previous, 5);
  EXPECT_TRUE(backward.went_backwards);
  EXPECT_FALSE(this->accumulator_.SetGlobalStep(3).went_backwards);
  EXPECT_EQ(this->Push(3, 1).outcome, ApplyOutcome::kAccepted);
}

TYPED_TEST(ConditionalAccumulatorTest, SetGlobalStepKeepsSumAndTakes) {
  this->Push(0, 2);
  this->Take(1, 2);
  this->accumulator_.SetGlobalStep(8);
  EXPECT_EQ(this->accumulator_.num_accumulated(), 1);

  const auto applied = this->Push(8, 4);

  ASSERT_THAT(applied.completed, SizeIs(1));
  EXPECT_THAT(Values(applied.completed[0].gradient), ElementsAre(3));
  EXPECT_EQ(applied.step, 9);
}

TYPED_TEST(ConditionalAccumulatorTest, TheLargestStepDoesNotOverflow) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  this->accumulator_.SetGlobalStep(kLast);
  this->Push(kLast, 1);

  ASSERT_THAT(this->Take(1, 1), SizeIs(1));

  EXPECT_EQ(this->accumulator_.step(), std::numeric_limits<int64_t>::min());
}

TYPED_TEST(ConditionalAccumulatorTest, ParallelPushesAreAllAdded) {
  std::vector<std::thread> pushers;
  for (int i = 1; i <= 10; ++i) {
    pushers.emplace_back([this, i] { this->Push(0, 10 * i); });
  }
  for (std::thread& pusher : pushers) pusher.join();

  const auto taken = this->Take(1, 1);

  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].num_gradients, 10);
  EXPECT_THAT(Values(taken[0].gradient), ElementsAre(55));
}

TYPED_TEST(ConditionalAccumulatorTest, ParallelTakesGetAStepEach) {
  std::vector<std::thread> takers;
  for (uint64_t id = 0; id < 10; ++id) {
    takers.emplace_back([this, id] { this->Take(id, 1); });
  }
  for (std::thread& taker : takers) taker.join();

  std::multiset<uint64_t> served;
  std::multiset<double> values;
  for (int step = 0; step < 10; ++step) {
    for (const auto& take : this->Push(step, step).completed) {
      served.insert(take.id);
      values.insert(Values(take.gradient).at(0));
    }
  }

  EXPECT_THAT(served, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// In any order, each gradient is in exactly one result or still in the
// sum, and a mean of ones is one.
TYPED_TEST(ConditionalAccumulatorTest, NoGradientIsLostOrCountedTwice) {
  constexpr int kPushes = 400;
  constexpr int64_t kNeverStale = 1 << 20;
  std::atomic<int64_t> handed_out = 0;
  const auto collect = [&handed_out](const auto& completed) {
    for (const auto& take : completed) {
      if (!take.status.ok()) continue;
      handed_out += take.num_gradients;
      EXPECT_THAT(Values(take.gradient), ElementsAre(1));
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kPushes; ++i) {
        const uint64_t id = i * 4 + t;
        collect(this->Push(kNeverStale, 1).completed);
        if (i % 4 == 0) collect(this->Take(id, 3));
        if (i % 16 == 0) collect(this->accumulator_.Cancel(id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(handed_out + this->accumulator_.num_accumulated(), 4 * kPushes);
  EXPECT_GT(handed_out, 0);
}

}  // namespace
}  // namespace lockstep::server
