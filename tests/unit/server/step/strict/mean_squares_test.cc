#include "server/step/strict/mean_squares.h"

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

TEST(MeanSquaresTest, SumIsInOrderOfPartsWhateverTheArrival) {
  // 1 is lost beside 2^53, unless 1 + 1 come first.
  constexpr double kLarge = 0x1p53;
  MeanSquares squares(3);
  squares.Measured(2, kLarge);
  squares.Measured(1, 1);
  squares.Measured(0, 1);

  EXPECT_EQ(squares.Sum(), kLarge + 2);
}

TEST(MeanSquaresTest, IsCompleteWithItsLastPartAndWaitsUntilItIsDecided) {
  MeanSquares squares(2);
  squares.Measured(1, 4);
  squares.Measured(1, 5);
  EXPECT_TRUE(squares.has(1));
  EXPECT_FALSE(squares.has(0));
  EXPECT_FALSE(squares.complete());

  squares.Measured(0, 0);
  EXPECT_TRUE(squares.complete());
  EXPECT_TRUE(squares.waits());

  squares.Decide();
  EXPECT_TRUE(squares.complete());
  EXPECT_FALSE(squares.waits());
}

TEST(MeanSquaresTest, AnotherAttemptBeginsWithNothing) {
  MeanSquares squares(1);
  squares.Measured(0, 3);
  squares.Decide();

  squares.Reset();

  EXPECT_FALSE(squares.has(0));
  EXPECT_FALSE(squares.decided());
  EXPECT_EQ(squares.Sum(), 0);
}

TEST(MeanSquaresTest, WithoutPartsNothingIsEverAwaited) {
  EXPECT_FALSE(MeanSquares(0).complete());
  EXPECT_FALSE(MeanSquares(0).waits());
}

}  // namespace
}  // namespace lockstep::server
