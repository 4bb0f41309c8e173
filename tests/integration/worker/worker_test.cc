#include "worker/worker.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(WorkerTest, DeviceThatNoBackendHasIsRefused) {
  LocalJob job({});

  EXPECT_THAT(
      Worker::Make(job.ClusterOf("worker", 0), {.device = "abacus"},
                   Clock::Real())
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("abacus")));
}

TEST(WorkerTest, ProgressCountsPassesAndWhatBecameOfThem) {
  LocalJob job({});
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);

  EXPECT_THAT(worker->Wait(), IsOk());

  const Progress progress = worker->role().progress();
  EXPECT_GE(progress.passes, 20);
  // The chief's word that the job is done may come before the token that tells
  // what became of the last pass.
  EXPECT_GE(progress.accepted, 19);
  EXPECT_LE(progress.accepted, progress.passes);
  EXPECT_EQ(progress.stale, 0);
}

TEST(WorkerTest, JobOfAnotherNameIsRefused) {
  LocalJob job({});
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker =
      Worker::Make(job.ClusterOf("worker", 0),
                   {.device = "cpu", .expected_job = "another"}, Clock::Real());
  ASSERT_THAT(worker, IsOk());

  EXPECT_THAT((*worker)->Run(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("another")));
  chief.chief().RequestStop("the test is over");
}

TEST(WorkerTest, DataThatIsMissingIsToldToTheChiefAndEndsTheJob) {
  LocalJob job({});
  job.job().data.train_images = job.directory().Join("absent");
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);

  EXPECT_THAT(worker->Wait(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
  EXPECT_THAT(chief.Wait(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("absent")));
}

}  // namespace
}  // namespace lockstep::worker
