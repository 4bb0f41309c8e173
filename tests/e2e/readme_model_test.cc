// The model of "Adding a model" in worker/models/README.md, built from its
// text.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

TEST(ReadmeModelTest, ExampleTrainsToWhatItsPicturesAllow) {
  auto job =
      TrainingJob::Make({.evaluator = true,
                         .set = {"model.kind=bottleneck",
                                 "model.hidden_units=", "train_steps=300"},
                         .compute_program = LOCKSTEP_README_WORKER});
  ASSERT_THAT(job->Run(), IsOk());

  // Chance is 0.1.
  EXPECT_THAT(job->cluster().ReadLog("evaluator", 0),
              IsOkAndHolds(::testing::ContainsRegex(
                  "step 300: accuracy (0\\.[89]|1\\.0)")));
}

}  // namespace
}  // namespace lockstep::testing
