#include "common/cluster/tf_config.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::StatusIs;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(TfConfigTest, ErrorsStartWithTheSource) {
  EXPECT_THAT(ParseTfConfig("[]", "/etc/cluster.json"),
              StatusIs(kInvalid, StartsWith("/etc/cluster.json is an array")));
}

TEST(TfConfigTest, JsonOfATaskIsSortedAndOnOneLine) {
  const ClusterSpec cluster = DenseCluster(
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
  const ClusterSpec cluster = DenseCluster({{"ps", {"\xff\"\n"}}});

  EXPECT_OK(ParseTfConfig(ToJson(cluster, {}), "TF_CONFIG"));
}

}  // namespace
}  // namespace lockstep
