#include "common/cluster/cluster_environment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ClusterEnvironmentTest, NoVariableIsLocal) {
  const auto config = TfConfigOfEnvironment({{"HOME", "/"}});

  ASSERT_OK(config);
  EXPECT_TRUE(config->cluster.empty());
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(ClusterEnvironmentTest, TfConfigCountsBesideAClusterSpec) {
  const auto config = TfConfigOfEnvironment(
      {{"CLUSTER_SPEC", "broken"}, {"TF_CONFIG", R"({"task":{"index":3}})"}});

  ASSERT_OK(config);
  EXPECT_EQ(config->task_index, 3);
  EXPECT_EQ(config->source, "TF_CONFIG");
}

TEST(ClusterEnvironmentTest, ABrokenClusterSpecIsNamed) {
  EXPECT_THAT(TfConfigOfEnvironment({{"CLUSTER_SPEC", "{"}}),
              StatusIs(kInvalid, StartsWith("CLUSTER_SPEC is not valid JSON")));
  EXPECT_THAT(TfConfigOfEnvironment({{"CLUSTER_SPEC", "[1]"}}),
              StatusIs(kInvalid, StartsWith("CLUSTER_SPEC is an array")));
  EXPECT_THAT(
      TfConfigOfEnvironment({{"CLUSTER_SPEC", "{\"cluster\":{},\"task\":1}"}}),
      StatusIs(kInvalid, HasSubstr("CLUSTER_SPEC: task is 1")));
}

TEST(ClusterEnvironmentTest, AClusterSpecWithoutATaskNamesWhatIsMissing) {
  EXPECT_THAT(TfConfigOfEnvironment({{"CLUSTER_SPEC", "{}"}}),
              StatusIs(kInvalid, HasSubstr("JOB_NAME is not set")));
}

}  // namespace
}  // namespace lockstep
