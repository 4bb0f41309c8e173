#include "common/plan/run_settings.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RunSettingsTest, PauseAndRevisionLeaveSumsAsTheyAre) {
  const RunSettings before{.replicas_to_aggregate = 2};
  RunSettings after = before;
  after.revision = 3;
  after.paused = true;
  EXPECT_TRUE(before.SameSum(after));
  EXPECT_FALSE(before == after);
}

TEST(RunSettingsTest, WhatChangesAnUpdateMakesAnotherSum) {
  const RunSettings before{.replicas_to_aggregate = 2, .workers = {0, 1}};
  EXPECT_FALSE(before.SameSum({.replicas_to_aggregate = 3, .workers = {0, 1}}));
  EXPECT_FALSE(before.SameSum({.replicas_to_aggregate = 2,
                               .learning_rate_scale = 0.5,
                               .workers = {0, 1}}));
  EXPECT_FALSE(before.SameSum({.replicas_to_aggregate = 2, .workers = {0, 2}}));
}

}  // namespace
}  // namespace lockstep
