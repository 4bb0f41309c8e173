#include "worker/scoring/scoring_progress.h"

#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::worker {
namespace {

TEST(ScoringProgressTest, SaysWhatHowFarAndHowLongYet) {
  testing::ManualClock clock;
  ScoringProgress progress(clock);
  EXPECT_EQ(progress.Get().activity, "");

  progress.Begin("scores step 300");
  EXPECT_EQ(progress.Get().activity, "scores step 300");
  clock.Advance(absl::Seconds(8));
  progress.Advance(4'000, 10'000);

  EXPECT_EQ(progress.Get().activity, "scores step 300, 40 %, 12 s to go");
  EXPECT_EQ(progress.Get().activity_age, absl::Seconds(8));

  progress.Begin("waits for a checkpoint");
  EXPECT_EQ(progress.Get().activity, "waits for a checkpoint");
  EXPECT_EQ(progress.Get().activity_age, absl::ZeroDuration());
}

TEST(ScoringProgressTest, FileThatIsReadStandsInPlaceOfTheActivity) {
  testing::ManualClock clock;
  ScoringProgress progress(clock);
  progress.Begin("reads the test set");
  {
    const FileReading::Scope scope(progress.reading());
    FileReading::Begin("reads", "/data/test.npy", 1000);
    FileReading::Advance(250);
    EXPECT_EQ(progress.Get().activity, "reads test.npy, 25 %");
  }
  EXPECT_EQ(progress.Get().activity, "reads the test set");
}

TEST(ScoringProgressTest, EachChangeIsTold) {
  testing::ManualClock clock;
  int told = 0;
  ScoringProgress progress(clock, [&told] { ++told; });
  progress.Begin("reads the test set");
  EXPECT_EQ(told, 1);
  {
    const FileReading::Scope scope(progress.reading());
    FileReading::Begin("reads", "test.npy", 1000);
    FileReading::Advance(250);
    EXPECT_EQ(told, 3);
  }
  progress.Advance(1, 2);
  EXPECT_EQ(told, 4);
}

TEST(ScoringProgressTest, TroubleIsReportedWhileItLasts) {
  testing::ManualClock clock;
  ScoringProgress progress(clock);
  progress.SetTrouble("a file is missing");
  EXPECT_EQ(progress.Get().trouble, "a file is missing");
  progress.SetTrouble("");
  EXPECT_EQ(progress.Get().trouble, "");
}

}  // namespace
}  // namespace lockstep::worker
