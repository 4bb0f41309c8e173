#include "strategy/workers/workers.h"

#include <stdlib.h>

#include <atomic>
#include <fstream>

#include "gmock/gmock.h"
#include "strategy/strategy.h"
#include "tests/integration/strategy/workers/group_fixture.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class WorkersTest : public GroupFixture {
 protected:
  // Options of the task, with the cluster in a file.
  WorkersOptions Task(const std::string& cluster, const std::string& task) {
    WorkersOptions options;
    options.tf_config = absl::StrCat(directory_.path(), "/", ++files_, ".json");
    std::ofstream(options.tf_config)
        << "{\"cluster\": {" << cluster << "}, \"task\": " << task << "}";
    options.join_timeout = absl::Seconds(60);
    return options;
  }

  static StrategyOptions Mirrored(int replicas) {
    StrategyOptions options;
    options.kind = Kind::kMultiWorkerMirrored;
    options.replicas = replicas;
    return options;
  }

  static float SumOfIds(Strategy& strategy) {
    const auto sums = strategy.Run([](Replica& replica) {
      return replica.AllReduce(ReduceOp::kSum,
                               Value::Scalar(static_cast<float>(replica.id())));
    });
    return sums.ok() ? sums->At(0).Elements<float>()[0] : -1;
  }

  const TempDir directory_;
  std::atomic<int> files_ = 0;
};

TEST_F(WorkersTest, AChiefAndWorkersAreReplicasOfOneStrategy) {
  Reserve(3);
  const std::string cluster =
      absl::StrCat(R"("chief": [")", addresses_[0], R"("], "worker": [")",
                   addresses_[1], R"(", ")", addresses_[2], R"("])");
  const std::vector<WorkersOptions> tasks = {
      Task(cluster, R"({"type": "chief", "index": 0})"),
      Task(cluster, R"({"type": "worker", "index": 0})"),
      Task(cluster, R"({"type": "worker", "index": 1})")};
  ForEach(3, [&](size_t i) {
    const auto strategy = Strategy::Join(Mirrored(2), tasks[i]);
    ASSERT_THAT(strategy, IsOk());
    EXPECT_EQ((*strategy)->worker(), static_cast<int>(i));
    EXPECT_EQ((*strategy)->replicas(), 6);
    EXPECT_EQ((*strategy)->should_checkpoint(), i == 0);
    EXPECT_EQ(SumOfIds(**strategy), 15);
  });
}

// No server listens at the workers' addresses.
TEST_F(WorkersTest, AnEvaluatorIsAlone) {
  for (const char* const evaluators :
       {"", R"(, "evaluator": ["127.0.0.1:3"])"}) {
    const auto strategy = Strategy::Join(
        Mirrored(2),
        Task(absl::StrCat(
                 R"("chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"])",
                 evaluators),
             R"({"type": "evaluator", "index": 0})"));
    ASSERT_THAT(strategy, IsOk());
    EXPECT_EQ((*strategy)->workers(), 1);
    EXPECT_EQ((*strategy)->replicas(), 2);
    EXPECT_TRUE((*strategy)->should_checkpoint());
    EXPECT_EQ(SumOfIds(**strategy), 1);
  }
}

TEST_F(WorkersTest, UnequalNumbersOfReplicasAreRefusedOnAllWorkers) {
  Reserve(2);
  const std::string cluster = absl::StrCat(R"("worker": [")", addresses_[0],
                                           R"(", ")", addresses_[1], R"("])");
  const std::vector<WorkersOptions> tasks = {
      Task(cluster, R"({"type": "worker", "index": 0})"),
      Task(cluster, R"({"type": "worker", "index": 1})")};
  ForEach(2, [&](size_t i) {
    EXPECT_THAT(
        Strategy::Join(Mirrored(static_cast<int>(i) + 1), tasks[i]).status(),
        StatusIs(kInvalid,
                 AllOf(HasSubstr("1 replicas"), HasSubstr("2 replicas"))));
  });
}

TEST_F(WorkersTest, UnequalImplementationsAreRefusedOnAllWorkers) {
  Reserve(2);
  const std::string cluster = absl::StrCat(R"("worker": [")", addresses_[0],
                                           R"(", ")", addresses_[1], R"("])");
  ForEach(2, [&](size_t i) {
    WorkersOptions options =
        Task(cluster, absl::StrCat(R"({"type": "worker", "index": )", i, "}"));
    if (i == 1) options.implementation = Implementation::kDirect;
    EXPECT_THAT(Strategy::Join(Mirrored(1), options).status(),
                StatusIs(kInvalid, AllOf(HasSubstr("communication AUTO"),
                                         HasSubstr("communication DIRECT"))));
  });
}

TEST_F(WorkersTest, NcclThatCannotBeUsedIsRefusedOnAllWorkers) {
  Reserve(2);
  const std::string cluster = absl::StrCat(R"("worker": [")", addresses_[0],
                                           R"(", ")", addresses_[1], R"("])");
  ForEach(2, [&](size_t i) {
    WorkersOptions options =
        Task(cluster, absl::StrCat(R"({"type": "worker", "index": )", i, "}"));
    options.implementation = Implementation::kNccl;
    options.gpu = 4096;  // on no machine
    EXPECT_THAT(Strategy::Join(Mirrored(1), options).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("NCCL cannot be used, because"),
                               HasSubstr("rank 0"), HasSubstr("kDirect"))));
  });
}

TEST_F(WorkersTest, WithoutAClusterThereIsOneWorker) {
  WorkersOptions options;
  options.tf_config = absl::StrCat(directory_.path(), "/empty.json");
  std::ofstream(options.tf_config) << "{}";
  const auto strategy = Strategy::Join(Mirrored(2), options);
  ASSERT_THAT(strategy, IsOk());
  EXPECT_EQ((*strategy)->workers(), 1);
  EXPECT_EQ(SumOfIds(**strategy), 1);
}

TEST_F(WorkersTest, WithoutTheVariableThereIsOneWorker) {
  unsetenv("TF_CONFIG");
  const auto strategy = Strategy::Join(Mirrored(2));
  ASSERT_THAT(strategy, IsOk());
  EXPECT_EQ((*strategy)->workers(), 1);
}

TEST_F(WorkersTest, OtherKindsAreOfOneProcess) {
  StrategyOptions options;
  options.replicas = 3;
  const auto strategy =
      Strategy::Join(options, Task("", R"({"type": "worker", "index": 0})"));
  ASSERT_THAT(strategy, IsOk());
  EXPECT_EQ((*strategy)->replicas(), 3);
}

// The replicas of each process are counted from 0.
TEST_F(WorkersTest, WorkerZeroOfAJobWithServersKeepsWhatAllCompute) {
  StrategyOptions options;
  options.kind = Kind::kParameterServer;
  for (const int index : {0, 1}) {
    const auto strategy = Strategy::Join(
        options,
        Task(R"("chief": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"], )"
             R"("worker": ["127.0.0.1:3", "127.0.0.1:4"])",
             absl::StrCat(R"({"type": "worker", "index": )", index, "}")));
    ASSERT_THAT(strategy, IsOk());
    EXPECT_EQ((*strategy)->first_replica(), 0);
    EXPECT_EQ((*strategy)->should_checkpoint(), index == 0);
    EXPECT_EQ((*strategy)->should_save_summary(), index == 0);
  }
  WorkersOptions missing;
  missing.tf_config = "/no/such/file";
  EXPECT_THAT(Strategy::Join(options, missing).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such")));
}

// Beside the servers of a job, whose own tasks never come here.
TEST_F(WorkersTest, WorkersOfAJobWithServersFormAGroup) {
  Reserve(2);
  const std::string cluster = absl::StrCat(
      R"("chief": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"], "worker": [")",
      addresses_[0], R"(", ")", addresses_[1], R"("])");
  StrategyOptions options;
  options.kind = Kind::kParameterServer;
  options.replicas = 2;
  ForEach(2, [&](size_t i) {
    WorkersOptions workers =
        Task(cluster, absl::StrCat(R"({"type": "worker", "index": )", i, "}"));
    workers.group_beside_servers = true;
    const auto strategy = Strategy::Join(options, workers);
    ASSERT_THAT(strategy, IsOk());
    EXPECT_EQ((*strategy)->replicas(), 4);
    EXPECT_EQ((*strategy)->should_checkpoint(), i == 0);
    EXPECT_EQ(SumOfIds(**strategy), 6);
  });
}

// Worker 0 has the chief at the address that the group needs.
TEST_F(WorkersTest, AGroupBesideServersNeedsAChiefTask) {
  StrategyOptions options;
  options.kind = Kind::kParameterServer;
  WorkersOptions workers =
      Task(R"("ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"])",
           R"({"type": "worker", "index": 0})");
  workers.group_beside_servers = true;
  EXPECT_THAT(Strategy::Join(options, workers).status(),
              StatusIs(kInvalid, HasSubstr("add \"chief\"")));
}

TEST_F(WorkersTest, TasksThatCannotBeAreRefused) {
  EXPECT_THAT(
      Strategy::Join(Mirrored(1),
                     Task(R"("ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"])",
                          R"({"type": "ps", "index": 0})"))
          .status(),
      StatusIs(kInvalid, HasSubstr("ps")));
  EXPECT_THAT(Strategy::Join(Mirrored(0)).status(),
              StatusIs(kInvalid, HasSubstr("replicas")));
  WorkersOptions missing;
  missing.tf_config = "/no/such/file";
  EXPECT_THAT(Strategy::Join(Mirrored(1), missing).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no/such")));
}

}  // namespace
}  // namespace lockstep::strategy
