#include "worker/scoring/checkpoint_choice.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

Manifest Saved(int64_t step, int64_t at) {
  Manifest manifest;
  manifest.global_step = step;
  manifest.saved_at_unix_ms = at;
  return manifest;
}

TEST(CheckpointChoiceTest, EachCheckpointIsScoredOnce) {
  EXPECT_TRUE(MustScore(Saved(10, 1), std::nullopt));
  EXPECT_FALSE(MustScore(Saved(10, 1), Saved(10, 1)));
  EXPECT_TRUE(MustScore(Saved(20, 2), Saved(10, 1)));
}

TEST(CheckpointChoiceTest, AJobThatGoesBackIsScoredAgain) {
  EXPECT_TRUE(MustScore(Saved(10, 1), Saved(20, 2)));
  EXPECT_TRUE(MustScore(Saved(15, 3), Saved(20, 2)));
  EXPECT_TRUE(MustScore(Saved(20, 3), Saved(20, 2)));
}

TEST(CheckpointChoiceTest, AScoreIsLostIfTheJobHasGoneBackFromItsStep) {
  EXPECT_FALSE(IsLost(Saved(20, 2), Saved(20, 2)));
  EXPECT_FALSE(IsLost(Saved(20, 2), Saved(30, 3)));
  EXPECT_TRUE(IsLost(Saved(20, 2), Saved(10, 1)));
  EXPECT_TRUE(IsLost(Saved(20, 2), Saved(20, 3)));
}

}  // namespace
}  // namespace lockstep::worker
