// Jobs of the real programs, whose workers compute on simulated devices.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 40;
constexpr char kVariable[] = "LOCKSTEP_CUDA_ON_CPU";
constexpr int kDeviceIsLost = 129;

std::unique_ptr<TrainingJob> MakeJob() {
  auto job = TrainingJob::Make(
      {.set = {absl::StrCat("train_steps=", kSteps), "batch_size=16"},
       .more_args = {},
       .compute_program = LOCKSTEP_WORKER_ON_SIMULATED_DEVICE});
  for (int worker = 0; worker < 2; ++worker) {
    job->cluster().AddArgument("worker", worker, "--device=cuda");
  }
  return job;
}

TEST(CudaWorkerJobTest, BitsDoNotDependOnDelays) {
  auto job = MakeJob();
  auto delayed = MakeJob();
  for (int worker = 0; worker < 2; ++worker) {
    delayed->cluster().SetEnvironment("worker", worker, kVariable,
                                      absl::StrCat("seed=", 5 + worker));
  }

  ASSERT_THAT(job->Run(), IsOk());
  ASSERT_THAT(delayed->Run(), IsOk());

  ExpectSameBits(job->checkpoints(), delayed->checkpoints(), kSteps);
  EXPECT_THAT(job->cluster().ReadLog("worker", 0),
              IsOkAndHolds(HasSubstr("computes on cuda")));
}

// A worker of several devices, each with a replica of the model.
std::unique_ptr<TrainingJob> MakeJobOfReplicas(
    const std::string& simulated,
    std::vector<std::string> set = {"strategy.replicas_per_worker=2"}) {
  set.push_back(absl::StrCat("train_steps=", kSteps));
  set.push_back("batch_size=16");
  auto job = TrainingJob::Make(
      {.workers = 1,
       .set = std::move(set),
       .more_args = {},
       .compute_program = LOCKSTEP_WORKER_ON_SIMULATED_DEVICE});
  job->cluster().AddArgument("worker", 0, "--device=cuda");
  job->cluster().SetEnvironment("worker", 0, kVariable, simulated);
  return job;
}

TEST(CudaWorkerJobTest, ReplicasOnDevicesOfTheirOwnHaveTheBitsOfWorkers) {
  auto workers = MakeJob();
  ASSERT_THAT(workers->Run(), IsOk());
  auto replicas = MakeJobOfReplicas("devices=2,seed=9");

  ASSERT_THAT(replicas->Run(), IsOk());

  ExpectSameBits(workers->checkpoints(), replicas->checkpoints(), kSteps);
  EXPECT_THAT(replicas->cluster().ReadLog("worker", 0),
              IsOkAndHolds(HasSubstr("replica 1 computes on cuda:1")));
}

TEST(CudaWorkerJobTest, MirroredJobHasAReplicaOnEachDevice) {
  auto workers = MakeJob();
  ASSERT_THAT(workers->Run(), IsOk());
  auto mirrored =
      MakeJobOfReplicas("devices=2,seed=3", {"strategy.kind=MIRRORED"});

  ASSERT_THAT(mirrored->Run(), IsOk());

  ExpectSameBits(workers->checkpoints(), mirrored->checkpoints(), kSteps);
}

TEST(CudaWorkerJobTest, ReplicasComputeOnTheDevicesThatTheJobNames) {
  auto workers = MakeJob();
  ASSERT_THAT(workers->Run(), IsOk());
  auto named = MakeJobOfReplicas(
      "devices=3",
      {"strategy.kind=MIRRORED", "strategy.devices=cuda:2,cuda:1"});

  ASSERT_THAT(named->Run(), IsOk());

  ExpectSameBits(workers->checkpoints(), named->checkpoints(), kSteps);
  EXPECT_THAT(named->cluster().ReadLog("worker", 0),
              IsOkAndHolds(AllOf(HasSubstr("replica 0 computes on cuda:2"),
                                 HasSubstr("replica 1 computes on cuda:1"))));
}

TEST(CudaWorkerJobTest, WorkersWithUnequalNumbersOfDevicesAreRefused) {
  auto job = TrainingJob::Make(
      {.set = {absl::StrCat("train_steps=", kSteps),
               "strategy.kind=MULTI_WORKER_MIRRORED"},
       .more_args = {},
       .compute_program = LOCKSTEP_WORKER_ON_SIMULATED_DEVICE});
  for (int worker = 0; worker < 2; ++worker) {
    job->cluster().AddArgument("worker", worker, "--device=cuda");
    job->cluster().SetEnvironment("worker", worker, kVariable,
                                  absl::StrCat("devices=", 2 + worker));
  }
  for (const char* first : {"chief", "ps", "worker"}) {
    ASSERT_THAT(job->cluster().Start(first, 0), IsOk());
  }
  ASSERT_THAT(job->cluster().Start("ps", 1), IsOk());
  ASSERT_THAT(
      job->cluster().WaitForLog("chief", 0, "worker 0 registered", kPatience),
      IsOk());

  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  const auto end = job->cluster().Wait("worker", 1, kPatience);

  ASSERT_THAT(end, IsOk());
  EXPECT_NE(end->code, 0);
  EXPECT_THAT(job->cluster().ReadLog("worker", 1),
              IsOkAndHolds(AllOf(HasSubstr("worker 1 computes on 3 GPUs"),
                                 HasSubstr("worker 0 computes on 2 GPUs"),
                                 HasSubstr("set the field to 2"))));
}

TEST(CudaWorkerJobTest, MoreReplicasThanDevicesAreRefusedWithTheFix) {
  auto job = MakeJobOfReplicas("devices=1");

  ASSERT_THAT(job->StartAll(), IsOk());
  const auto end = job->cluster().Wait("worker", 0, kPatience);

  ASSERT_THAT(end, IsOk());
  EXPECT_NE(end->code, 0);
  EXPECT_THAT(job->cluster().ReadLog("worker", 0),
              IsOkAndHolds(AllOf(HasSubstr("strategy.replicas_per_worker is 2"),
                                 HasSubstr("this process sees 1"))));
}

TEST(CudaWorkerJobTest, WorkerWithoutItsDeviceEndsAndItsSuccessorGoesOn) {
  auto undisturbed = MakeJob();
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = MakeJob();
  job->cluster().SetEnvironment("worker", 1, kVariable,
                                "fail=cudaGraphLaunch:10:214");

  ASSERT_THAT(job->StartAll(), IsOk());
  const auto end = job->cluster().Wait("worker", 1, kPatience);
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(end->code, kDeviceIsLost);
  EXPECT_THAT(job->cluster().ReadLog("worker", 1),
              IsOkAndHolds(HasSubstr("the device is lost to this process")));

  job->cluster().UnsetEnvironment("worker", 1, kVariable);
  ASSERT_THAT(job->cluster().Start("worker", 1), IsOk());
  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(job->checkpoints(), undisturbed->checkpoints(), kSteps);
}

// A job whose worker 0 hosts the chief, and that goes on without the device of
// worker `lost` until that has been started again.
void ExpectToGoOn(TrainingJob::Options options, int lost) {
  options.workers = 2;
  options.chief = false;
  options.set.insert(options.set.end(),
                     {absl::StrCat("train_steps=", kSteps), "batch_size=16"});
  options.compute_program = LOCKSTEP_WORKER_ON_SIMULATED_DEVICE;
  const auto make = [&] {
    auto job = TrainingJob::Make(options);
    for (int worker = 0; worker < 2; ++worker) {
      job->cluster().AddArgument("worker", worker, "--device=cuda");
    }
    return job;
  };
  auto undisturbed = make();
  ASSERT_THAT(undisturbed->Run(), IsOk());
  auto job = make();
  job->cluster().SetEnvironment("worker", lost, kVariable,
                                "fail=cudaGraphLaunch:10:214");

  ASSERT_THAT(job->StartAll(), IsOk());
  const auto end = job->cluster().Wait("worker", lost, kPatience);
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(end->code, kDeviceIsLost);

  job->cluster().UnsetEnvironment("worker", lost, kVariable);
  ASSERT_THAT(job->cluster().Start("worker", lost), IsOk());
  ASSERT_THAT(job->cluster().WaitAllSucceed(kPatience), IsOk());
  ExpectSameBits(job->checkpoints(), undisturbed->checkpoints(), kSteps);
}

TEST(CudaWorkerJobTest, WorkerWithTheChiefEndsWithoutItsDevice) {
  ExpectToGoOn({.servers = 2}, /*lost=*/0);
}

TEST(CudaWorkerJobTest, WorkerWithAMirrorEndsWithoutItsDevice) {
  ExpectToGoOn({.servers = 0, .set = {"strategy.kind=MULTI_WORKER_MIRRORED"}},
               /*lost=*/1);
}

TEST(CudaWorkerJobTest, MemoryThatIsShortEndsTheWorkerWithTheFix) {
  auto job = MakeJob();
  job->cluster().SetEnvironment("worker", 0, kVariable, "memory=33556000");

  ASSERT_THAT(job->StartAll(), IsOk());
  const auto end = job->cluster().Wait("worker", 0, kPatience);

  ASSERT_THAT(end, IsOk());
  EXPECT_NE(end->code, 0);
  EXPECT_THAT(job->cluster().ReadLog("worker", 0),
              IsOkAndHolds(HasSubstr("make batch_size smaller")));
}

}  // namespace
}  // namespace lockstep::testing
