#include "worker/replicas/replica_backends.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

JobConfig JobOf(int replicas, std::vector<std::string> devices = {}) {
  JobConfig job;
  job.model.kind = "softmax";
  job.strategy.kind = StrategyKind::kMirrored;
  job.strategy.replicas_per_worker = replicas;
  job.strategy.devices = std::move(devices);
  return job;
}

// The devices of a worker on its CPU.
ReplicaBackends OnCpu() {
  return {MakeBackend("cpu", {.threads = 1}).value(), /*threads=*/1};
}

TEST(ReplicaBackendsTest, AWorkerOnItsCpuHasNoGpu) {
  EXPECT_EQ(OnCpu().gpus(), 0);
}

TEST(ReplicaBackendsTest, EachReplicaHasADeviceOfItsOwn) {
  ReplicaBackends backends = OnCpu();
  const ComputeBackend* const first = &backends[0];

  ASSERT_THAT(backends.Open(JobOf(3)), IsOk());

  ASSERT_EQ(backends.size(), 3u);
  EXPECT_EQ(&backends[0], first);
  EXPECT_NE(&backends[1], &backends[2]);
}

TEST(ReplicaBackendsTest, ADeviceStaysWhenTheWorkerRegistersAgain) {
  ReplicaBackends backends = OnCpu();
  ASSERT_THAT(backends.Open(JobOf(2)), IsOk());
  const ComputeBackend* const second = &backends[1];

  ASSERT_THAT(backends.Open(JobOf(2)), IsOk());

  EXPECT_EQ(&backends[1], second);
}

TEST(ReplicaBackendsTest, NamedDevicesAreOpened) {
  ReplicaBackends backends = OnCpu();

  ASSERT_THAT(backends.Open(JobOf(0, {"cpu:1", "cpu:0"})), IsOk());

  EXPECT_EQ(backends.size(), 2u);
}

TEST(ReplicaBackendsTest, AGpuThatIsNotThereIsRefusedWithTheField) {
  if (CountGpus() > 60) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: this machine has the GPU";
  }
  ReplicaBackends backends = OnCpu();

  EXPECT_THAT(backends.Open(JobOf(0, {"cpu:0", "cuda:63"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("strategy.devices[1] is cuda:63"),
                             HasSubstr("name other devices"))));
  EXPECT_EQ(backends.size(), 1u);
}

}  // namespace
}  // namespace lockstep::worker
