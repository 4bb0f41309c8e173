#include "common/cluster/cluster_environment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ClusterEnvironmentTest, NoVariableIsSaidWithTheFix) {
  EXPECT_THAT(TfConfigOfEnvironment({{"HOME", "/"}}),
              StatusIs(absl::StatusCode::kNotFound,
                       StartsWith("TF_CONFIG is not set; set it, or give "
                                  "--tf_config FILE")));
  EXPECT_THAT(TfConfigOfEnvironment({{"HOME", "/"}}, "/etc/job.env"),
              StatusIs(absl::StatusCode::kNotFound,
                       StartsWith("/etc/job.env: TF_CONFIG is not set; add a "
                                  "line TF_CONFIG=")));
}

TEST(ClusterEnvironmentTest, ANameInSmallLettersIsPointedAt) {
  EXPECT_THAT(TfConfigOfEnvironment({{"tf_config", "{}"}}),
              StatusIs(absl::StatusCode::kNotFound,
                       "TF_CONFIG is not set; tf_config is: write its name in "
                       "capitals"));
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
  EXPECT_THAT(TfConfigOfEnvironment(
                  {{"CLUSTER_SPEC",
                    R"({"cluster":{"workerpool1":["a:1"],"worker":["b:1"]},
                "task":{"type":"worker","index":0}})"}}),
              StatusIs(kInvalid, HasSubstr("both cluster.workerpool1 and "
                                           "cluster.worker")));
  EXPECT_THAT(TfConfigOfEnvironment({{"CLUSTER_SPEC", "[1]"}}),
              StatusIs(kInvalid, StartsWith("CLUSTER_SPEC is an array")));
  const auto config =
      TfConfigOfEnvironment({{"CLUSTER_SPEC", "{\"cluster\":{},\"task\":1}"}});
  ASSERT_OK(config);
  EXPECT_THAT(config->mistakes.status(),
              StatusIs(kInvalid, HasSubstr("CLUSTER_SPEC: task is 1")));
}

TEST(ClusterEnvironmentTest, AClusterSpecWithoutATaskNamesWhatIsMissing) {
  EXPECT_THAT(TfConfigOfEnvironment({{"CLUSTER_SPEC", "{}"}}),
              StatusIs(kInvalid, HasSubstr("JOB_NAME is not set")));
}

}  // namespace
}  // namespace lockstep
