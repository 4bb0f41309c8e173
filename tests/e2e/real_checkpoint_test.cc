// The checkpoints of a real run, read with the safetensors library.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr int kSkipped = 77;

TEST(RealCheckpointTest, IsReadByTheSafetensorsLibrary) {
  auto job = TrainingJob::Make(
      {.set = {"optimizer.kind=ADAM", "checkpoint.every_steps=50"}});
  ASSERT_THAT(job->Run(), IsOk());
  const TempDir scratch;
  ChildProcess::Options script;
  script.program = LOCKSTEP_SAFETENSORS_SCRIPT;
  script.args = {LOCKSTEP_SAMPLE_CHECKPOINT, LOCKSTEP_SAFETENSORS_VENV,
                 job->checkpoints()};
  script.log_path = scratch.Join("log");
  auto child = ChildProcess::Start(script);
  ASSERT_THAT(child, IsOk());

  absl::StatusOr<cli::TaskExit> ended = (*child)->Wait(absl::Minutes(4));

  ASSERT_THAT(ended, IsOk());
  if (ended->code == kSkipped) GTEST_SKIP() << (*child)->LastWords();
  EXPECT_TRUE(ended->ok()) << (*child)->LastWords();
}

}  // namespace
}  // namespace lockstep::testing
