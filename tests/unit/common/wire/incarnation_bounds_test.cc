#include "common/wire/incarnation_bounds.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using testing::StatusIs;

const TaskId kWorker{TaskType::kWorker, 0};
const TaskId kPs{TaskType::kPs, 1};
const auto kRefused = StatusIs(absl::StatusCode::kInvalidArgument,
                               ::testing::HasSubstr("set the clock"));

TEST(IncarnationBoundsTest, WhatAClockDrawsIsTaken) {
  EXPECT_OK(CheckDrawn(kWorker, 0, 0));
  EXPECT_OK(CheckDrawn(kWorker, 1'700'000'000'000'000, 0));
  EXPECT_OK(CheckDrawn(kWorker, kMaxDrawnIncarnation, 0));
  EXPECT_THAT(CheckDrawn(kWorker, kMaxDrawnIncarnation + 1, 0), kRefused);
  EXPECT_THAT(CheckDrawn(kWorker, ~uint64_t{0}, 0), kRefused);
}

TEST(IncarnationBoundsTest, SuccessorOfTheNewestIsTaken) {
  EXPECT_OK(CheckDrawn(kPs, kMaxDrawnIncarnation + 1, kMaxDrawnIncarnation));
  const uint64_t most = kMaxDrawnIncarnation + kMaxIncarnationLead;
  EXPECT_OK(CheckDrawn(kPs, most, kMaxDrawnIncarnation));
  EXPECT_THAT(CheckDrawn(kPs, most + 1, kMaxDrawnIncarnation), kRefused);
}

}  // namespace
}  // namespace lockstep
