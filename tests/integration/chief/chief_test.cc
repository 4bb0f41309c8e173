#include "chief/chief.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/checkpoint/format/manifest.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

// A whole chief, with whole servers and workers in the process of the test.

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

double ValueOf(const MetricFamilies& metrics, const std::string& name) {
  for (const auto& family : metrics.families()) {
    if (family.name == name) return family.metric.at(0).gauge.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

TEST(ChiefTest, JobRunsToItsLastStepAndLeavesACheckpointOfIt) {
  LocalJob job({.servers = 2, .workers = 2});
  LocalChief chief(job);
  auto ps0 = StartServer(job, 0);
  auto ps1 = StartServer(job, 1);
  auto worker0 = StartWorker(job, 0);
  auto worker1 = StartWorker(job, 1);

  EXPECT_THAT(chief.Wait(), IsOk());

  for (auto* worker : {&worker0, &worker1}) {
    EXPECT_THAT((*worker)->Wait(), IsOk());
    // The chief's word that the job is done may come before the token that
    // tells what became of the last pass.
    EXPECT_GE((*worker)->role().progress().accepted, 19);
  }
  for (auto* server : {&ps0, &ps1}) EXPECT_THAT((*server)->Wait(), IsOk());
  auto checkpoint = CheckpointStore(job.checkpoints()).OpenLatest();
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->manifest().global_step, 20);
  EXPECT_EQ(ValueOf(chief.chief().Metrics(), "lockstep_global_step"), 20);
}

TEST(ChiefTest, StopEndsTheJobWithACheckpointOfTheStepAtHand) {
  LocalJob job({});
  job.job().train_steps = 1'000'000;
  LocalChief chief(job);
  auto server = StartServer(job);
  auto worker = StartWorker(job);
  while (ValueOf(chief.chief().Metrics(), "lockstep_global_step") < 10) {
    absl::SleepFor(absl::Milliseconds(1));
  }

  chief.chief().RequestStop("enough");

  EXPECT_THAT(chief.Wait(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_THAT(worker->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(server->Wait(), StatusIs(absl::StatusCode::kCancelled));
  auto checkpoint = CheckpointStore(job.checkpoints()).OpenLatest();
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_GE(checkpoint->manifest().global_step, 10);
}

TEST(ChiefTest, JobWhoseCheckpointHasTheLastStepEndsAtOnce) {
  LocalJob job({});
  for (int run = 0; run < 2; ++run) {
    if (run == 1) {
      // A new chief waits for four heartbeats, at least two seconds, for the
      // first members; on a busy machine these may need longer.
      job.job().heartbeat_interval = absl::Milliseconds(2500);
      job.job().lease = absl::Seconds(6);
    }
    auto server = StartServer(job);
    auto worker = StartWorker(job);
    // The last to come: it does not wait long for members that it cannot use.
    LocalChief chief(job);
    EXPECT_THAT(chief.Wait(), IsOk());
    EXPECT_THAT(worker->Wait(), IsOk());
    if (run == 1) {
      EXPECT_EQ(worker->role().progress().passes, 0);
    }
  }
}

TEST(ChiefTest, CheckpointOfAClockThatWasAheadIsNotOfTheFuture) {
  LocalJob job({});
  for (int run = 0; run < 2; ++run) {
    auto server = StartServer(job);
    auto worker = StartWorker(job);
    LocalChief chief(job);
    ASSERT_THAT(chief.Wait(), IsOk());
    ASSERT_THAT(worker->Wait(), IsOk());
    if (run == 1) {
      EXPECT_LE(ValueOf(chief.chief().Metrics(),
                        "lockstep_checkpoint_timestamp_seconds"),
                absl::ToUnixSeconds(absl::Now()) + 60);
      return;
    }
    auto checkpoint = CheckpointStore(job.checkpoints()).OpenLatest();
    ASSERT_THAT(checkpoint, IsOk());
    Manifest manifest = checkpoint->manifest();
    manifest.saved_at_unix_ms =
        absl::ToUnixMillis(absl::Now() + absl::Hours(1));
    const absl::StatusOr<std::string> text = EncodeManifest(manifest);
    ASSERT_THAT(text, IsOk());
    std::ofstream(
        absl::StrCat(job.checkpoints(), "/step-00000020/", kManifestFile))
        << *text;
  }
}

TEST(ChiefTest, ReplicasThatTheClusterCannotSupplyAreRefused) {
  LocalJob job({});
  job.job().total_num_replicas = 3;

  EXPECT_THAT(LocalChief(job).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("total_num_replicas")));
}

TEST(ChiefTest, ClusterWithoutServersIsRefused) {
  LocalJob job({.servers = 0});

  EXPECT_THAT(LocalChief(job).Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ps")));
}

TEST(ChiefTest, SecondJobMayNotWriteItsCheckpointsWhereOneRuns) {
  LocalJob job({});
  job.job().train_steps = 1'000'000;
  LocalChief chief(job);
  JobConfig other = job.job();
  other.name = "other";

  EXPECT_THAT(
      Chief::Make(job.ClusterOf("chief", 0), other, 2, Clock::Real()).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr(job.checkpoints())));
  chief.chief().RequestStop("the test is over");
}

}  // namespace
}  // namespace lockstep::chief
