#include "deploy/cli/status/eta.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

using ::testing::Eq;
using ::testing::Optional;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(EtaTest, OneAnswerIsNotEnough) {
  Eta eta;

  eta.Record(At(0), 10);

  EXPECT_EQ(eta.Remaining(100), std::nullopt);
}

TEST(EtaTest, StepsThatAreLeftTakeAsLongAsThoseThatWereMade) {
  Eta eta;

  eta.Record(At(0), 10);
  eta.Record(At(5), 60);

  EXPECT_THAT(eta.Remaining(100), Optional(Eq(absl::Seconds(4))));
}

TEST(EtaTest, OnlyTheWindowCounts) {
  Eta eta;
  for (int second = 0; second <= 60; ++second) eta.Record(At(second), second);
  for (int second = 61; second <= 100; ++second) {
    eta.Record(At(second), 60 + 10 * (second - 60));
  }

  EXPECT_THAT(eta.Remaining(560), Optional(Eq(absl::Seconds(10))));
}

TEST(EtaTest, NoStepWithinTheWindowIsNoEstimate) {
  Eta eta;
  eta.Record(At(0), 0);
  eta.Record(At(1), 50);

  for (int second = 2; second <= 40; ++second) eta.Record(At(second), 50);

  EXPECT_EQ(eta.Remaining(100), std::nullopt);
}

TEST(EtaTest, AJobThatWentBackIsEstimatedAfresh) {
  Eta eta;
  eta.Record(At(0), 0);
  eta.Record(At(1), 100);

  eta.Record(At(2), 50);
  EXPECT_EQ(eta.Remaining(100), std::nullopt);
  eta.Record(At(3), 60);

  EXPECT_THAT(eta.Remaining(100), Optional(Eq(absl::Seconds(4))));
}

TEST(EtaTest, TimeThatWentBackStartsAfresh) {
  Eta eta;
  eta.Record(At(10), 0);

  eta.Record(At(5), 50);

  EXPECT_EQ(eta.Remaining(100), std::nullopt);
}

TEST(EtaTest, NothingIsLeftBeyondTheEnd) {
  Eta eta;
  eta.Record(At(0), 0);
  eta.Record(At(1), 120);

  EXPECT_THAT(eta.Remaining(100), Optional(Eq(absl::ZeroDuration())));
}

TEST(EtaTest, ExtremeStepsDoNotOverflow) {
  Eta eta;
  eta.Record(At(0), std::numeric_limits<int64_t>::min());
  eta.Record(At(1), std::numeric_limits<int64_t>::max());

  EXPECT_THAT(eta.Remaining(0), Optional(Eq(absl::ZeroDuration())));
}

}  // namespace
}  // namespace lockstep::cli
