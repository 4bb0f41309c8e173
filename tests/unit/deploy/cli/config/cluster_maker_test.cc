#include "deploy/cli/config/cluster_maker.h"

#include "common/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ClusterMakerTest, TasksOfOneHostGetPortsInARow) {
  EXPECT_THAT(
      MakeCluster({.ps = 2, .workers = 1, .evaluator = true}),
      IsOkAndHolds(DenseCluster({{"chief", {"localhost:2222"}},
                                 {"ps", {"localhost:2223", "localhost:2224"}},
                                 {"worker", {"localhost:2225"}},
                                 {"evaluator", {"localhost:2226"}}})));
}

TEST(ClusterMakerTest, AHostForEachTaskKeepsThePort) {
  EXPECT_THAT(MakeCluster({.ps = 1,
                           .workers = 2,
                           .host_pattern = "j-{task}-{index}.net",
                           .port = 80}),
              IsOkAndHolds(DenseCluster(
                  {{"chief", {"j-chief-0.net:80"}},
                   {"ps", {"j-ps-0.net:80"}},
                   {"worker", {"j-worker-0.net:80", "j-worker-1.net:80"}}})));
}

TEST(ClusterMakerTest, AHostSharedByIndexHasATaskOfEachJob) {
  EXPECT_THAT(MakeCluster({.chief = false, .host_pattern = "node{index}"}),
              IsOkAndHolds(DenseCluster(
                  {{"ps", {"node0:2222"}}, {"worker", {"node0:2223"}}})));
}

TEST(ClusterMakerTest, HostsByNameTakeTheTasksInTurn) {
  EXPECT_THAT(MakeCluster({.ps = 1, .workers = 3, .hosts = {"n7", "n9"}}),
              IsOkAndHolds(DenseCluster(
                  {{"chief", {"n7:2222"}},
                   {"ps", {"n7:2223"}},
                   {"worker", {"n7:2224", "n9:2222", "n7:2225"}}})));
  EXPECT_THAT(MakeCluster({.workers = 2, .hosts = {"n7", ""}}),
              StatusIs(kInvalid, HasSubstr("--hosts has \"\": ")));
}

TEST(ClusterMakerTest, PortZeroIsLeftToTheLauncher) {
  EXPECT_THAT(MakeCluster({.chief = false, .port = 0}),
              IsOkAndHolds(DenseCluster(
                  {{"ps", {"localhost:0"}}, {"worker", {"localhost:0"}}})));
}

TEST(ClusterMakerTest, WithoutPsTheOthersAreLeft) {
  EXPECT_THAT(MakeCluster({.ps = 0, .port = 0}),
              IsOkAndHolds(DenseCluster(
                  {{"chief", {"localhost:0"}}, {"worker", {"localhost:0"}}})));
}

TEST(ClusterMakerTest, NonsenseIsRefusedByItsFlag) {
  EXPECT_THAT(MakeCluster({.ps = -1}),
              StatusIs(kInvalid, "--ps is -1, but must be from 0 to 10000"));
  EXPECT_THAT(MakeCluster({.workers = 10'001}),
              StatusIs(kInvalid, HasSubstr("--workers is 10001")));
  EXPECT_THAT(MakeCluster({.port = 65'536}),
              StatusIs(kInvalid, HasSubstr("--port is 65536")));
  EXPECT_THAT(MakeCluster({.port = 65'534}),
              StatusIs(kInvalid, HasSubstr("too few ports")));
  EXPECT_THAT(MakeCluster({.host_pattern = "{host}"}),
              StatusIs(kInvalid, HasSubstr("only in {task} and {index}")));
  EXPECT_THAT(MakeCluster({.host_pattern = "a b"}),
              StatusIs(kInvalid, HasSubstr("--host_pattern is \"a b\": ")));
}

TEST(ClusterMakerTest, AJobTakesALineAndIsReadBack) {
  const absl::StatusOr<ClusterSpec> cluster = MakeCluster({});
  ASSERT_OK(cluster);
  const std::string json = ToJson(*cluster, {TaskType::kPs, 0});

  const std::string text = PrettyCluster(json);

  EXPECT_EQ(text,
            "{\n"
            "  \"cluster\": {\n"
            "    \"chief\": [\"localhost:2222\"],\n"
            "    \"ps\": [\"localhost:2223\"],\n"
            "    \"worker\": [\"localhost:2224\"]\n"
            "  },\n"
            "  \"task\": {\"index\":0,\"type\":\"ps\"}\n"
            "}\n");
  const auto again = ParseTfConfig(text, "again");
  ASSERT_OK(again);
  EXPECT_EQ(again->cluster, *cluster);
}

}  // namespace
}  // namespace lockstep::cli
