#include "common/plan/step_vocabulary.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Answers to a pass are found by its name.
TEST(PassIdTest, StepNumberSlotAndBlockTellPassesApart) {
  const PassId pass{.step = 3, .number = 5, .slot = 2, .block = 4};
  EXPECT_EQ(pass, (PassId{.step = 3, .number = 5, .slot = 2, .block = 4}));
  EXPECT_NE(pass, (PassId{.step = 4, .number = 5, .slot = 2, .block = 4}));
  EXPECT_NE(pass, (PassId{.step = 3, .number = 6, .slot = 2, .block = 4}));
  EXPECT_NE(pass, (PassId{.step = 3, .number = 5, .slot = 3, .block = 4}));
  EXPECT_NE(pass, (PassId{.step = 3, .number = 5, .slot = 2, .block = 2}));
}

// A step without shared work names neither slot nor block.
TEST(PassIdTest, PassIsTheWholeShareUnlessItSaysOtherwise) {
  EXPECT_EQ((PassId{.step = 3, .number = 5}),
            (PassId{.step = 3, .number = 5, .slot = 0, .block = 1}));
}

TEST(MeanNormTest, NormOfAnotherAttemptIsAnotherNorm) {
  EXPECT_EQ((MeanNorm{1, 2.5}), (MeanNorm{1, 2.5}));
  EXPECT_NE((MeanNorm{1, 2.5}), (MeanNorm{2, 2.5}));
  EXPECT_NE((MeanNorm{1, 2.5}), (MeanNorm{1, 3.5}));
}

// 0 admits no incarnation at all, none set admits each.
TEST(WorkerStandingTest, ShutOutFromTheFirstIsNotTheSameAsNotShutOut) {
  EXPECT_NE((WorkerStanding{.worker = 1, .shut_out_above = 0}),
            (WorkerStanding{.worker = 1}));
  EXPECT_NE((WorkerStanding{.worker = 1, .input_ended = true}),
            (WorkerStanding{.worker = 1}));
}

}  // namespace
}  // namespace lockstep
