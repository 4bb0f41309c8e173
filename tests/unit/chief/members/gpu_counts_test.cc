#include "chief/members/gpu_counts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

bool Lives(int /*worker*/) { return true; }
bool IsGone(int /*worker*/) { return false; }
absl::Status Joins() { return absl::OkStatus(); }

JobConfig Mirrored() {
  JobConfig job;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  job.model.kind = "softmax";
  return job;
}

TEST(GpuCountsTest, EquallyManyFit) {
  GpuCounts counts(Mirrored());

  EXPECT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());
  EXPECT_THAT(counts.Add(1, 4, Lives, Joins), IsOk());
}

TEST(GpuCountsTest, AnotherNumberIsRefusedWithBothAndTheFix) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());

  EXPECT_THAT(counts.Add(1, 2, Lives, Joins),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("worker 1 computes on 2 GPUs"),
                             HasSubstr("worker 0 computes on 4 GPUs"),
                             HasSubstr("strategy.replicas_per_worker"),
                             HasSubstr("set the field to 2"))));
}

TEST(GpuCountsTest, ARefusedWorkerDoesNotBindOthers) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());
  ASSERT_FALSE(counts.Add(1, 2, Lives, Joins).ok());

  EXPECT_THAT(counts.Add(2, 4, Lives, Joins), IsOk());
}

TEST(GpuCountsTest, AProcessThatDoesNotJoinDoesNotBindOthers) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());
  const auto refused = [] { return absl::UnavailableError("it is older"); };

  EXPECT_EQ(counts.Add(0, 2, IsGone, refused), refused());

  EXPECT_THAT(counts.Add(1, 4, Lives, Joins), IsOk());
}

TEST(GpuCountsTest, OneGpuIsOneReplicaAsTheCpuIs) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 1, Lives, Joins), IsOk());

  EXPECT_THAT(counts.Add(1, 0, Lives, Joins), IsOk());
}

TEST(GpuCountsTest, AWorkerThatHasGoneIsNotCompared) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());

  EXPECT_THAT(counts.Add(1, 2, IsGone, Joins), IsOk());
}

TEST(GpuCountsTest, AWorkerMayComeBackWithAnotherNumber) {
  GpuCounts counts(Mirrored());
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());

  EXPECT_THAT(counts.Add(0, 2, Lives, Joins), IsOk());
  EXPECT_THAT(counts.Add(1, 2, Lives, Joins), IsOk());
}

TEST(GpuCountsTest, AJobThatSaysItsReplicasTakesAnyNumber) {
  JobConfig job = Mirrored();
  job.strategy.replicas_per_worker = 1;
  GpuCounts counts(job);
  ASSERT_THAT(counts.Add(0, 4, Lives, Joins), IsOk());

  EXPECT_THAT(counts.Add(1, 2, Lives, Joins), IsOk());
}

}  // namespace
}  // namespace lockstep::chief
