#include "common/job/replicas.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

JobConfig JobOf(StrategyKind kind, int replicas = 0,
                std::vector<std::string> devices = {}) {
  JobConfig job;
  job.model.kind = "softmax";
  job.strategy.kind = kind;
  job.strategy.replicas_per_worker = replicas;
  job.strategy.devices = std::move(devices);
  return job;
}

TEST(ReplicasTest, MirroredKindsHaveOneOnEachGpu) {
  for (const StrategyKind kind :
       {StrategyKind::kMirrored, StrategyKind::kMultiWorkerMirrored}) {
    EXPECT_EQ(ReplicasPerWorker(JobOf(kind), 4), 4);
    EXPECT_EQ(ReplicasPerWorker(JobOf(kind), 1), 1);
    EXPECT_EQ(ReplicasPerWorker(JobOf(kind), 0), 1);
    EXPECT_TRUE(HasReplicaOnEachGpu(JobOf(kind)));
  }
}

TEST(ReplicasTest, OtherKindsHaveOne) {
  EXPECT_EQ(ReplicasPerWorker(JobOf(StrategyKind::kParameterServer), 4), 1);
  EXPECT_EQ(ReplicasPerWorker(JobOf(StrategyKind::kOneDevice), 4), 1);
}

TEST(ReplicasTest, AProgramOfTheUserHasOneUnlessTheJobSaysMore) {
  JobConfig job = JobOf(StrategyKind::kMultiWorkerMirrored);
  job.model.kind = "external";

  EXPECT_EQ(ReplicasPerWorker(job, 4), 1);
  EXPECT_FALSE(HasReplicaOnEachGpu(job));

  job.strategy.replicas_per_worker = 3;
  EXPECT_OK(CheckReplicas(job));
  EXPECT_EQ(ReplicasPerWorker(job, 4), 3);
}

// One replica computes tables; a ring is over the workers.
TEST(ReplicasTest, SomeMirroredJobsHaveOneOnAnyNumberOfGpus) {
  JobConfig tables = JobOf(StrategyKind::kMultiWorkerMirrored);
  tables.model.kind = "logistic_regression";
  JobConfig ring = JobOf(StrategyKind::kMultiWorkerMirrored);
  ring.strategy.communication.order = SumOrder::kRing;
  for (const JobConfig& job : {tables, ring}) {
    EXPECT_EQ(ReplicasPerWorker(job, 4), 1);
    EXPECT_FALSE(HasReplicaOnEachGpu(job));
  }
}

TEST(ReplicasTest, TheJobsNumberCountsUnderEachKind) {
  EXPECT_EQ(ReplicasPerWorker(JobOf(StrategyKind::kMirrored, 2), 4), 2);
  EXPECT_EQ(ReplicasPerWorker(JobOf(StrategyKind::kParameterServer, 3), 1), 3);
}

TEST(ReplicasTest, EachNamedDeviceIsAReplica) {
  const JobConfig job =
      JobOf(StrategyKind::kMirrored, 0, {"cuda:2", "cuda:0", "cpu:0"});

  EXPECT_THAT(CheckReplicas(job), IsOk());
  EXPECT_EQ(ReplicasPerWorker(job, 8), 3);
  EXPECT_FALSE(HasReplicaOnEachGpu(job));
}

TEST(ReplicasTest, NamesOfDevicesAreRead) {
  const auto device = ParseReplicaDevice("cuda:12");

  ASSERT_THAT(device, IsOk());
  EXPECT_TRUE(device->is_gpu);
  EXPECT_EQ(device->number, 12);
  ASSERT_THAT(ParseReplicaDevice("cpu:0"), IsOk());
  EXPECT_FALSE(ParseReplicaDevice("cpu:0")->is_gpu);
}

TEST(ReplicasTest, OtherNamesAreRefused) {
  for (const char* name :
       {"", "cuda", "cuda:", "gpu:0", "cuda:-1", "cuda:64", "cuda:01",
        "cuda: 1", "cuda:1 ", "cpu:1x", "cuda:99999999999", "CPU:0"}) {
    EXPECT_THAT(ParseReplicaDevice(name),
                StatusIs(kInvalid, HasSubstr("cpu:N or cuda:N")))
        << name;
  }
}

TEST(ReplicasTest, ADeviceNamedTwiceIsRefused) {
  EXPECT_THAT(
      CheckReplicas(JobOf(StrategyKind::kMirrored, 0, {"cpu:0", "cpu:0"})),
      StatusIs(kInvalid, AllOf(HasSubstr("strategy.devices"),
                               HasSubstr("cpu:0"), HasSubstr("twice"))));
}

TEST(ReplicasTest, NumberAndNamesMustAgree) {
  EXPECT_THAT(
      CheckReplicas(JobOf(StrategyKind::kMirrored, 3, {"cpu:0", "cpu:1"})),
      StatusIs(kInvalid, AllOf(HasSubstr("strategy.replicas_per_worker is 3"),
                               HasSubstr("leave the number out"))));
  EXPECT_THAT(
      CheckReplicas(JobOf(StrategyKind::kMirrored, 2, {"cpu:0", "cpu:1"})),
      IsOk());
}

TEST(ReplicasTest, OneDeviceHasOneReplica) {
  EXPECT_THAT(CheckReplicas(JobOf(StrategyKind::kOneDevice, 0, {"cuda:1"})),
              IsOk());
  EXPECT_THAT(
      CheckReplicas(JobOf(StrategyKind::kOneDevice, 0, {"cpu:0", "cpu:1"})),
      StatusIs(kInvalid, AllOf(HasSubstr("strategy.devices is 2"),
                               HasSubstr("MIRRORED"))));
  EXPECT_THAT(CheckReplicas(JobOf(StrategyKind::kOneDevice, 2)),
              StatusIs(kInvalid, HasSubstr("strategy.replicas_per_worker")));
}

TEST(ReplicasTest, AProgramOfTheUserChoosesItsDevice) {
  JobConfig job = JobOf(StrategyKind::kMirrored, 0, {"cpu:0"});
  job.model.kind = "external";

  EXPECT_THAT(CheckReplicas(job),
              StatusIs(kInvalid, AllOf(HasSubstr("strategy.devices"),
                                       HasSubstr("external"))));
}

TEST(ReplicasTest, AModelWithTablesHasOneUnderEachKind) {
  for (const StrategyKind kind :
       {StrategyKind::kMirrored, StrategyKind::kParameterServer}) {
    for (const char* model :
         {"logistic_regression", "skip_gram", "wide_and_deep"}) {
      JobConfig job = JobOf(kind, 2);
      job.model.kind = model;
      EXPECT_THAT(CheckReplicas(job),
                  StatusIs(kInvalid,
                           AllOf(HasSubstr("strategy.replicas_per_worker is 2"),
                                 HasSubstr(model),
                                 HasSubstr("start more workers instead"))));
      job.strategy = {kind, 0, {"cpu:0", "cpu:1"}};
      EXPECT_THAT(CheckReplicas(job),
                  StatusIs(kInvalid, HasSubstr("strategy.devices is 2")));
      job.strategy = {kind, 0, {"cpu:0"}};
      EXPECT_THAT(CheckReplicas(job), IsOk());
    }
  }
}

TEST(ReplicasTest, NumbersOutOfRangeAreRefused) {
  for (const int replicas : {-1, 65}) {
    EXPECT_THAT(CheckReplicas(JobOf(StrategyKind::kMirrored, replicas)),
                StatusIs(kInvalid, HasSubstr("strategy.replicas_per_worker")));
  }
}

}  // namespace
}  // namespace lockstep
