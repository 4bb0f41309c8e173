#include "common/cluster/tf_config.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TfConfig TwoPsThreeWorkers() {
  TfConfig config;
  config.cluster = ClusterSpec::FromLists(
      {{"ps", {"ps0:2222", "ps1:2222"}},
       {"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}}});
  config.task_type = "ps";
  config.task_index = 0;
  return config;
}

TEST(TfConfigTest, ErrorsStartWithTheSource) {
  EXPECT_THAT(ParseTfConfig("[]", "/etc/cluster.json"),
              StatusIs(kInvalid, StartsWith("/etc/cluster.json is an array")));
}

TEST(TfConfigTest, MasterIsTheAddressOfTheOwnTask) {
  EXPECT_THAT(MasterAddress(TwoPsThreeWorkers()), IsOkAndHolds("ps0:2222"));
}

TEST(TfConfigTest, MasterOfAnotherTaskIsItsAddress) {
  EXPECT_THAT(MasterAddress(TwoPsThreeWorkers(), "worker", 1),
              IsOkAndHolds("worker1:2222"));
}

TEST(TfConfigTest, RpcLayerIsTheSchemeOfTheMaster) {
  TfConfig config = TwoPsThreeWorkers();
  config.rpc_layer = "grpc";

  EXPECT_THAT(MasterAddress(config), IsOkAndHolds("grpc://ps0:2222"));
}

TEST(TfConfigTest, SessionMasterBeatsEverything) {
  TfConfig config = TwoPsThreeWorkers();
  config.rpc_layer = "grpc";
  config.session_master = "sessionmaster:2222";

  EXPECT_THAT(MasterAddress(config), IsOkAndHolds("sessionmaster:2222"));
  EXPECT_THAT(MasterAddress(config, "worker", 99),
              IsOkAndHolds("sessionmaster:2222"));
}

TEST(TfConfigTest, MasterOfNothingOrOfOneTaskIsEmpty) {
  TfConfig alone;
  alone.cluster = ClusterSpec::FromLists({{"worker", {"w:1"}}});

  EXPECT_THAT(MasterAddress(TfConfig()), IsOkAndHolds(""));
  EXPECT_THAT(MasterAddress(alone), IsOkAndHolds(""));
}

TEST(TfConfigTest, LoneSparseTaskStillHasAMaster) {
  TfConfig config;
  config.cluster = ClusterSpec::FromJobs({{"worker", {{1, "w:1"}}}}).value();
  config.task_type = "worker";
  config.task_index = 1;

  EXPECT_THAT(MasterAddress(config), IsOkAndHolds("w:1"));
}

TEST(TfConfigTest, MasterOfNoTaskIsAnError) {
  TfConfig config = TwoPsThreeWorkers();

  EXPECT_THAT(MasterAddress(config, "chief", 0),
              StatusIs(kInvalid, HasSubstr("no job \"chief\"")));

  config.task_index.reset();
  EXPECT_THAT(MasterAddress(config),
              StatusIs(kInvalid, StartsWith("TF_CONFIG: task.type and "
                                            "task.index are needed")));
}

TEST(TfConfigTest, UnionTakesAllButTheClusterFromTheFirst) {
  TfConfig first = TwoPsThreeWorkers();
  TfConfig second;
  second.cluster = ClusterSpec::FromLists({{"ps", {"ps2:2222"}}});
  second.rpc_layer = "other";

  const absl::StatusOr<TfConfig> joined = UnionOf({first, second});

  ASSERT_OK(joined);
  EXPECT_EQ(joined->cluster.NumTasks("ps"), 3);
  EXPECT_EQ(joined->task_type, "ps");
  EXPECT_EQ(joined->rpc_layer, "");
}

TEST(TfConfigTest, UnionOfNothingIsLocal) {
  const absl::StatusOr<TfConfig> joined = UnionOf({});

  ASSERT_OK(joined);
  EXPECT_TRUE(joined->cluster.empty());
}

TEST(TfConfigTest, UnionRefusesOneSparseIndexTwice) {
  TfConfig sparse;
  sparse.cluster = ClusterSpec::FromJobs({{"worker", {{1, "w:1"}}}}).value();

  EXPECT_THAT(UnionOf({sparse, sparse}),
              StatusIs(kInvalid, HasSubstr("task 1 of job \"worker\"")));
}

TEST(TfConfigTest, JsonOfATaskIsSortedAndOnOneLine) {
  const ClusterSpec cluster = ClusterSpec::FromLists(
      {{"worker", {"worker0:2222"}}, {"ps", {"ps0:2222", "ps1:2222"}}});

  EXPECT_EQ(ToJson(cluster, {TaskType::kPs, 1}),
            R"({"cluster":{"ps":["ps0:2222","ps1:2222"],)"
            R"("worker":["worker0:2222"]},"task":{"index":1,"type":"ps"}})");
}

TEST(TfConfigTest, JsonOfATaskIsReadBack) {
  const ClusterSpec cluster =
      ClusterSpec::FromJobs({{"worker", {{1, "b:1"}, {12, "m:1"}}},
                             {"ps", {{0, "p:1"}}},
                             {"chief", {}}})
          .value();

  const absl::StatusOr<TfConfig> config =
      ParseTfConfig(ToJson(cluster, {TaskType::kWorker, 12}), "TF_CONFIG");

  ASSERT_OK(config);
  EXPECT_EQ(config->cluster, cluster);
  EXPECT_EQ(config->task_type, "worker");
  EXPECT_THAT(config->task_index, Optional(12));
}

TEST(TfConfigTest, JsonOfBrokenTextIsStillJson) {
  const ClusterSpec cluster = ClusterSpec::FromLists({{"ps", {"\xff\"\n"}}});

  EXPECT_OK(ParseTfConfig(ToJson(cluster, {}), "TF_CONFIG"));
}

}  // namespace
}  // namespace lockstep
