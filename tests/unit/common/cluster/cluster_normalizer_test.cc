#include "common/cluster/cluster_normalizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};

absl::StatusOr<NormalizedCluster> Normalize(absl::string_view cluster,
                                            TaskId self = kWorker0,
                                            bool allow_port_zero = false) {
  absl::StatusOr<TfConfig> config =
      ParseTfConfig(absl::StrCat("{\"cluster\": ", cluster, "}"), "TF_CONFIG");
  if (!config.ok()) return config.status();
  return NormalizeCluster(*config, self, allow_port_zero);
}

TEST(ClusterNormalizerTest, GoodClusterStaysAsItIs) {
  const auto normalized = Normalize(
      R"({"chief": ["h:1"], "worker": ["h:2"], "ps": ["h:3", "[::1]:3"],
          "evaluator": ["h.:4"]})");

  ASSERT_OK(normalized);
  EXPECT_EQ(normalized->spec, DenseCluster({{"chief", {"h:1"}},
                                            {"worker", {"h:2"}},
                                            {"ps", {"h:3", "[::1]:3"}},
                                            {"evaluator", {"h.:4"}}}));
  EXPECT_THAT(normalized->warnings, IsEmpty());
}

TEST(ClusterNormalizerTest, MasterIsCalledChief) {
  const auto normalized = Normalize(R"({"master": ["h:1"], "worker": []})");

  ASSERT_OK(normalized);
  EXPECT_THAT(normalized->spec.TaskAddress("chief", 0), IsOkAndHolds("h:1"));
  EXPECT_FALSE(normalized->spec.jobs().contains("master"));
  EXPECT_THAT(normalized->warnings,
              ElementsAre(HasSubstr("cluster.master is taken for "
                                    "cluster.chief")));
}

TEST(ClusterNormalizerTest, EmptyMasterBesideAChiefIsHarmless) {
  EXPECT_OK(Normalize(R"({"master": [], "chief": ["h:1"]})"));
}

TEST(ClusterNormalizerTest, JobWithoutMeaningIsLeftOutWithAWarning) {
  const auto normalized = Normalize(R"({"workers": ["bad"], "ps": ["h:1"]})");

  ASSERT_OK(normalized);
  EXPECT_FALSE(normalized->spec.jobs().contains("workers"));
  EXPECT_THAT(normalized->warnings,
              ElementsAre(AllOf(StartsWith("TF_CONFIG: "),
                                HasSubstr("the job \"workers\""))));
}

TEST(ClusterNormalizerTest, SchemeIsTakenOffWithAWarning) {
  const auto normalized = Normalize(R"({"ps": ["grpc://h:1"]})");

  ASSERT_OK(normalized);
  EXPECT_THAT(normalized->spec.TaskAddress("ps", 0), IsOkAndHolds("h:1"));
  EXPECT_THAT(normalized->warnings,
              ElementsAre(HasSubstr("cluster.ps[0] is \"grpc://h:1\"")));
}

TEST(ClusterNormalizerTest, OneHostServesTwoTasksAtTwoPorts) {
  EXPECT_OK(Normalize(R"({"worker": ["h:1", "h:2"], "ps": ["h:3"]})"));
}

struct ErrorCase {
  const char* cluster;
  const char* message;
};

class NormalizerErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(NormalizerErrorTest, NamesSourcePathValueAndFix) {
  EXPECT_THAT(Normalize(GetParam().cluster),
              StatusIs(kInvalid, AllOf(StartsWith("TF_CONFIG: "),
                                       HasSubstr(GetParam().message))))
      << GetParam().cluster;
}

INSTANTIATE_TEST_SUITE_P(
    All, NormalizerErrorTest,
    ::testing::Values(
        ErrorCase{R"({"worker": ["h:1", "h"]})",
                  "cluster.worker[1] is \"h\": the port is missing; write "
                  "\"host:port\""},
        ErrorCase{R"({"worker": {"7": "h:x"}})",
                  "cluster.worker[7] is \"h:x\": the port \"x\" is not"},
        ErrorCase{R"({"worker": ["::1:2222"]})", "write an IPv6 address as"},
        ErrorCase{R"({"worker": [""]})", "cluster.worker[0] is \"\""},
        ErrorCase{R"({"ps": ["h:0"]})",
                  "cluster.ps[0] is \"h:0\": port 0 is for `lockstep run`"},
        ErrorCase{R"({"worker": ["h:1"], "ps": ["h:1"]})",
                  "cluster.ps[0] and cluster.worker[0] are both \"h:1\"; give "
                  "each task a port of its own"},
        ErrorCase{R"({"worker": ["h:1", "H.:01"]})",
                  "cluster.worker[0] and cluster.worker[1] are both \"h:1\""},
        ErrorCase{R"({"worker": ["grpc://h:1", "h:1"]})", "are both \"h:1\""},
        ErrorCase{R"({"chief": ["h:1"], "master": ["h:2"]})",
                  "both chief and master; remove master"},
        ErrorCase{R"({"master": ["h:1"], "evaluator": ["h:2"]})",
                  "master, which excludes an evaluator; call it chief"},
        ErrorCase{R"({"chief": ["h:1", "h:2"]})",
                  "cluster.chief has 2 tasks, but may have one"},
        ErrorCase{R"({"master": ["h:1", "h:2"]})",
                  "cluster.chief has 2 tasks, but may have one"},
        ErrorCase{R"({"evaluator": {"0": "h:1", "5": "h:2"}})",
                  "cluster.evaluator has 2 tasks, but may have one"}));

TEST(ClusterNormalizerTest, MasterExcludesAnEvaluatorOutsideTheClusterToo) {
  EXPECT_THAT(
      Normalize(R"({"master": ["h:1"]})", {TaskType::kEvaluator, 0}),
      StatusIs(kInvalid, HasSubstr("master, which excludes an evaluator")));
}

TEST(ClusterNormalizerTest, PortZeroMayOccurTwiceWhereItIsAllowed) {
  const auto normalized =
      Normalize(R"({"worker": ["h:0", "h:0"]})", kWorker0, true);

  ASSERT_OK(normalized);
  EXPECT_EQ(normalized->spec.NumTasks("worker"), 2);
}

TEST(ClusterNormalizerTest, LonePsAtPlaceZeroMovesToItsIndex) {
  const auto normalized =
      Normalize(R"({"ps": ["h:1"], "worker": {}})", {TaskType::kPs, 3});

  ASSERT_OK(normalized);
  EXPECT_THAT(normalized->spec.TaskIndices("ps"), ElementsAre(3));
  EXPECT_THAT(normalized->spec.TaskAddress("ps", 3), IsOkAndHolds("h:1"));
  EXPECT_THAT(normalized->warnings,
              ElementsAre(HasSubstr("taken for that of ps 3")));
}

TEST(ClusterNormalizerTest, PsStaysInPlaceWhenItSeesOthersOrIsTaskZero) {
  const TaskId ps3 = {TaskType::kPs, 3};
  for (const auto& [cluster, self] :
       {std::pair(R"({"ps": ["h:1"], "worker": ["h:2"]})", ps3),
        std::pair(R"({"ps": ["h:1"], "chief": ["h:2"]})", ps3),
        std::pair(R"({"ps": ["h:1"]})", TaskId{TaskType::kPs, 0}),
        std::pair(R"({"ps": ["h:1"]})", kWorker0)}) {
    const auto normalized = Normalize(cluster, self);

    ASSERT_OK(normalized);
    EXPECT_THAT(normalized->spec.TaskIndices("ps"), ElementsAre(0)) << cluster;
  }
}

}  // namespace
}  // namespace lockstep
