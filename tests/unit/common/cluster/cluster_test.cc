#include "common/cluster/cluster.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/cluster/cluster_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::kChief0;
using ::lockstep::testing::kEvaluator0;
using ::lockstep::testing::kFull;
using ::lockstep::testing::kNoChief;
using ::lockstep::testing::kPs0;
using ::lockstep::testing::kWorker0;
using ::lockstep::testing::kWorker1;
using ::lockstep::testing::Make;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ClusterTest, SeedExampleOfTwoWorkers) {
  const auto cluster = Make(
      R"({"cluster": {"worker": ["localhost:12345", "localhost:23456"]},
          "task": {"type": "worker", "index": 0}})");

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->self(), kWorker0);
  EXPECT_TRUE(cluster->IsChief());
  EXPECT_THAT(cluster->WorkerCount(TaskType::kWorker), IsOkAndHolds(2));
  EXPECT_TRUE(cluster->WorkerHostsChief());
}

TEST(ClusterTest, ChiefTaskIsTheChief) {
  const auto cluster = Make(kFull, kChief0);

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->chief(), kChief0);
  EXPECT_TRUE(cluster->IsChief());
  EXPECT_THAT(cluster->IsChief(kChief0), IsOkAndHolds(true));
  EXPECT_THAT(cluster->IsChief(kWorker0), IsOkAndHolds(false));
  EXPECT_FALSE(cluster->WorkerHostsChief());
}

TEST(ClusterTest, WithoutAChiefWorkerZeroIsIt) {
  const auto cluster = Make(kNoChief, kWorker1);

  ASSERT_OK(cluster);
  EXPECT_FALSE(cluster->IsChief());
  EXPECT_THAT(cluster->IsChief(kWorker0), IsOkAndHolds(true));
  EXPECT_THAT(cluster->IsChief(kWorker1), IsOkAndHolds(false));
  EXPECT_THAT(cluster->IsChief(kPs0), IsOkAndHolds(false));
  EXPECT_TRUE(cluster->WorkerHostsChief());
}

TEST(ClusterTest, AskingForATaskThatIsNotThereIsAnError) {
  const auto cluster = Make(kNoChief, kWorker0);

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->IsChief(kChief0),
              StatusIs(kInvalid,
                       "TF_CONFIG: cluster has no task chief 0; "
                       "cluster.chief is empty"));
  EXPECT_THAT(cluster->Address({TaskType::kWorker, 2}),
              StatusIs(kInvalid, HasSubstr("no task worker 2; cluster.worker "
                                           "has the tasks 0, 1")));
}

TEST(ClusterTest, AMisspeltJobOfTheTaskIsNamed) {
  EXPECT_THAT(Make(R"({"cluster": {"wroker": ["w:1"], "ps": ["p:1"]},
                       "task": {"type": "worker", "index": 0}})")
                  .status(),
              StatusIs(kInvalid, AllOf(HasSubstr("no task worker 0"),
                                       HasSubstr("the job \"wroker\""),
                                       HasSubstr("did you mean worker?"))));
}

TEST(ClusterTest, AddressesAndCountsAreByTask) {
  const auto cluster = Make(kFull, kWorker1);

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->Address(kWorker1), IsOkAndHolds("w:2"));
  EXPECT_THAT(cluster->Address(kPs0), IsOkAndHolds("p:1"));
  EXPECT_THAT(cluster->Tasks(TaskType::kPs),
              ElementsAre(kPs0, TaskId{TaskType::kPs, 1}));
  EXPECT_EQ(cluster->num_ps(), 2);
  EXPECT_EQ(cluster->num_workers(), 2);
  EXPECT_TRUE(cluster->has_chief());
  EXPECT_FALSE(cluster->has_evaluator());
  EXPECT_FALSE(cluster->IsLocal());
}

TEST(ClusterTest, IdsPutTheChiefFirst) {
  const auto cluster = Make(kFull, kChief0);

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->IdInCluster(kChief0), IsOkAndHolds(0));
  EXPECT_THAT(cluster->IdInCluster(kWorker0), IsOkAndHolds(1));
  EXPECT_THAT(cluster->IdInCluster(kWorker1), IsOkAndHolds(2));
  EXPECT_THAT(cluster->WorkerCount(TaskType::kWorker), IsOkAndHolds(3));
  EXPECT_THAT(cluster->WorkerCount(TaskType::kChief), IsOkAndHolds(3));
}

TEST(ClusterTest, WithoutPsEachTaskThatComputesIsAWorkerWithAMirror) {
  const char* kMirrored =
      R"({"chief": ["c:1"], "worker": ["w:1", "w:2"], "evaluator": ["e:1"]})";
  const auto cluster = Make(kMirrored, kWorker0);
  ASSERT_OK(cluster);
  EXPECT_TRUE(cluster->HasMirrors());

  const auto mirrored = cluster->WithMirrors();

  ASSERT_OK(mirrored);
  EXPECT_TRUE(mirrored->hosts_mirrors());
  EXPECT_EQ(mirrored->self(), kWorker1);
  EXPECT_EQ(mirrored->chief(), kWorker0);
  EXPECT_EQ(mirrored->num_workers(), 3);
  EXPECT_EQ(mirrored->num_ps(), 3);
  EXPECT_THAT(mirrored->Address(kWorker0), IsOkAndHolds("c:1"));
  EXPECT_THAT(mirrored->Address({TaskType::kPs, 2}), IsOkAndHolds("w:2"));
  EXPECT_THAT(mirrored->Address(kEvaluator0), IsOkAndHolds("e:1"));
  EXPECT_FALSE(mirrored->HasMirrors());
  const auto mirror = mirrored->SeenBy({TaskType::kPs, 1});
  ASSERT_OK(mirror);
  EXPECT_EQ(mirror->self(), (TaskId{TaskType::kPs, 1}));
  EXPECT_THAT(mirrored->SeenBy({TaskType::kPs, 3}),
              StatusIs(kInvalid, HasSubstr("no task ps 3")));
}

TEST(ClusterTest, ChiefTaskIsTheFirstWorkerWithAMirror) {
  const auto cluster =
      Make(R"({"chief": ["c:1"], "worker": ["w:1"]})", kChief0);
  ASSERT_OK(cluster);

  const auto mirrored = cluster->WithMirrors();

  ASSERT_OK(mirrored);
  EXPECT_EQ(mirrored->self(), kWorker0);
  EXPECT_TRUE(mirrored->IsChief());
}

TEST(ClusterTest, PsOrAPartOfTheTasksLeaveNoMirrors) {
  const auto servers = Make(kNoChief, kWorker0);
  ASSERT_OK(servers);
  EXPECT_FALSE(servers->HasMirrors());
  EXPECT_THAT(servers->WithMirrors(),
              StatusIs(kInvalid, HasSubstr("cluster.ps is not empty")));
  const auto sparse = Make(R"({"worker": {"1": "w:2"}})", kWorker1);
  ASSERT_OK(sparse);
  EXPECT_THAT(sparse->WithMirrors(),
              StatusIs(kInvalid, HasSubstr("needs to know all")));
}

TEST(ClusterTest, IdsWithoutAChiefAreTheIndices) {
  const auto cluster = Make(kNoChief, kPs0);

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->IdInCluster(kWorker1), IsOkAndHolds(1));
  EXPECT_THAT(cluster->WorkerCount(TaskType::kChief),
              StatusIs(kInvalid, HasSubstr("no chief task")));
}

TEST(ClusterTest, PsHasNoIdAndDoesNotCount) {
  const auto cluster = Make(kFull, kPs0);

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->IdInCluster(kPs0),
              StatusIs(kInvalid, HasSubstr("ps task has no place")));
  EXPECT_THAT(cluster->WorkerCount(TaskType::kPs),
              StatusIs(kInvalid, HasSubstr("ps tasks do not count")));
  EXPECT_THAT(cluster->IdInCluster({TaskType::kWorker, 9}),
              StatusIs(kInvalid, HasSubstr("no task worker 9")));
}

TEST(ClusterTest, EvaluatorOutsideTheClusterTakesNoPartInTraining) {
  const auto cluster = Make(
      R"({"chief": ["c:1"], "ps": ["p:1", "p:2"],
          "worker": ["w:1", "w:2", "w:3"]})",
      kEvaluator0);

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->num_workers(), 0);
  EXPECT_EQ(cluster->num_ps(), 0);
  EXPECT_FALSE(cluster->IsChief());
  EXPECT_TRUE(cluster->has_evaluator());
  EXPECT_FALSE(cluster->IsLocal());
  EXPECT_THAT(cluster->WorkerCount(TaskType::kEvaluator), IsOkAndHolds(1));
  EXPECT_THAT(cluster->IdInCluster(kEvaluator0), IsOkAndHolds(0));
  EXPECT_THAT(cluster->Address(kChief0), IsOkAndHolds("c:1"));
  EXPECT_THAT(cluster->Address(kEvaluator0), StatusIs(kInvalid));
}

TEST(ClusterTest, EvaluatorMayBeInTheClusterOrAlone) {
  EXPECT_OK(Make(R"({"worker": ["w:1"], "evaluator": ["e:1"]})", kEvaluator0));
  EXPECT_OK(Make(R"({"evaluator": ["e:1"]})", kEvaluator0));
  EXPECT_OK(Make(R"({"worker": {}, "ps": []})", kEvaluator0));
  EXPECT_OK(Make(kFull, {TaskType::kEvaluator, 12}));
}

TEST(ClusterTest, NothingGivenIsWorkerZeroAlone) {
  const auto cluster = Make("{}");

  ASSERT_OK(cluster);
  EXPECT_TRUE(cluster->IsLocal());
  EXPECT_EQ(cluster->self(), kWorker0);
  EXPECT_TRUE(cluster->IsChief());
  EXPECT_THAT(cluster->IsChief(kWorker0), IsOkAndHolds(true));
  EXPECT_TRUE(cluster->WorkerHostsChief());
  EXPECT_EQ(cluster->num_workers(), 1);
  EXPECT_THAT(cluster->WorkerCount(TaskType::kWorker), IsOkAndHolds(1));
  EXPECT_THAT(cluster->IdInCluster(kWorker0), IsOkAndHolds(0));
  EXPECT_THAT(cluster->Address(kWorker0), StatusIs(kInvalid));
}

TEST(ClusterTest, MasterTaskIsTheChief) {
  const auto cluster = Make(
      R"({"cluster": {"master": ["c:1"], "worker": ["w:1"]},
          "task": {"type": "master", "index": "0"}})");

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->self(), kChief0);
  EXPECT_TRUE(cluster->IsChief());
  EXPECT_THAT(cluster->Address(kChief0), IsOkAndHolds("c:1"));
}

TEST(ClusterTest, SparseWorkerSeesItselfAndTheServers) {
  const auto cluster = Make(R"({"worker": {"2": "w:3"}, "ps": ["p:1", "p:2"]})",
                            {TaskType::kWorker, 2});

  ASSERT_OK(cluster);
  EXPECT_EQ(cluster->num_workers(), 1);
  EXPECT_EQ(cluster->num_ps(), 2);
  EXPECT_EQ(cluster->chief(), kWorker0);
  EXPECT_FALSE(cluster->IsChief());
  EXPECT_THAT(cluster->Address(cluster->self()), IsOkAndHolds("w:3"));
}

TEST(ClusterTest, SparseTaskMustBeThereByIndexAndNotByCount) {
  EXPECT_THAT(Make(R"({"worker": {"5": "w:1"}})", kWorker0),
              StatusIs(kInvalid, HasSubstr("has the tasks 5")));
}

TEST(ClusterTest, LonePsSeesItselfAtItsIndex) {
  const auto cluster =
      Make(R"({"ps": ["p:4"], "worker": {}})", {TaskType::kPs, 3});

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->Address(cluster->self()), IsOkAndHolds("p:4"));
  EXPECT_THAT(cluster->warnings(), ElementsAre(HasSubstr("ps 3")));
}

TEST(ClusterTest, WarningsOfDocumentAndChecksAreJoined) {
  const auto cluster = Make(
      R"({"cluster": {"worker": ["grpc://w:1"]}, "extra": 1,
          "task": {"type": "worker", "index": 0}})");

  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->warnings(),
              ElementsAre(HasSubstr("extra"), HasSubstr("scheme")));
  EXPECT_EQ(cluster->source(), "TF_CONFIG");
}

TEST(ClusterTest, PortZeroIsForTestsAlone) {
  EXPECT_THAT(Make(R"({"worker": ["w:0"]})", kWorker0),
              StatusIs(kInvalid, HasSubstr("port 0 is for `lockstep run`")));
  EXPECT_OK(
      Make(R"({"worker": ["w:0"]})", kWorker0, {.allow_port_zero = true}));
}

struct ErrorCase {
  const char* json;
  const char* message;
};

class ClusterErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(ClusterErrorTest, NamesSourcePathValueAndFix) {
  EXPECT_THAT(Make(GetParam().json),
              StatusIs(kInvalid, AllOf(StartsWith("TF_CONFIG: "),
                                       HasSubstr(GetParam().message))))
      << GetParam().json;
}

TEST(ClusterTest, MistakesOfTheTaskAreFoundTogether) {
  EXPECT_THAT(Make(R"({"cluster": {"ps": ["p:x"]}, "task": {"type": 5}})"),
              StatusIs(kInvalid, AllOf(HasSubstr("task.type is \"5\""),
                                       HasSubstr("task.index is missing"),
                                       HasSubstr("p:x"))));
}

INSTANTIATE_TEST_SUITE_P(
    All, ClusterErrorTest,
    ::testing::Values(
        ErrorCase{R"({"cluster": {"worker": ["w:1", "w:2"]}})",
                  "task.type is missing; set it to chief, worker, ps or"},
        ErrorCase{R"({"cluster": {"worker": ["w:1"]},
                      "task": {"type": "worker"}})",
                  "task.index is missing; set it, counting from 0"},
        ErrorCase{R"({"cluster": {"worker": ["w:1"]}, "task": {"index": 0}})",
                  "task.type is missing"},
        ErrorCase{R"({"cluster": {"worker": ["w:1"], "foo": ["f:1"]},
                      "task": {"type": "foo", "index": 0}})",
                  "task.type is \"foo\", but must be chief, worker, ps or"},
        ErrorCase{R"({"cluster": {"worker": ["w:1"]},
                      "task": {"type": 123456, "index": 0}})",
                  "task.type is \"123456\""},
        ErrorCase{R"({"cluster": {"worker": ["w:1"]},
                      "task": {"type": "chief", "index": 0}})",
                  "no task chief 0; cluster.chief is empty; correct task, or "
                  "add its address to cluster"},
        ErrorCase{R"({"cluster": {"worker": ["w:1", "w:2"]},
                      "task": {"type": "worker", "index": 2}})",
                  "no task worker 2; cluster.worker has the tasks 0, 1"},
        ErrorCase{R"({"cluster": {"worker": {}, "ps": []},
                      "task": {"type": "chief", "index": 0}})",
                  "cluster.chief is empty"},
        ErrorCase{R"({"cluster": {"chief": ["c:1", "c:2"]},
                      "task": {"type": "chief", "index": 0}})",
                  "cluster.chief has 2 tasks"},
        ErrorCase{R"({"cluster": {"worker": ["w:1"],
                                  "evaluator": ["e:1", "e:2"]},
                      "task": {"type": "worker", "index": 0}})",
                  "cluster.evaluator has 2 tasks"},
        ErrorCase{R"({"task": {"type": "ps", "index": 0}})",
                  "there is a task but no cluster; add cluster, or remove"},
        ErrorCase{R"({"task": {"type": "worker", "index": 1}})",
                  "without a cluster it can only be worker 0"},
        ErrorCase{R"({"cluster": {}, "task": {"type": "evaluator",
                      "index": 0}})",
                  "without a cluster it can only be worker 0"}));

TEST(ClusterTest, NegativeIndexSetByAProgramIsRefused) {
  TfConfig config;
  config.cluster = DenseCluster({{"worker", {"w:1"}}});
  config.task_type = "worker";
  config.task_index = -1;

  EXPECT_THAT(Cluster::Make(config),
              StatusIs(kInvalid, HasSubstr("task.index is -1, but must be 0")));
}

TEST(ClusterTest, LongListOfTasksIsCutInMessages) {
  TfConfig config;
  config.cluster = DenseCluster(
      {{"worker",
        {"a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7", "a:8", "a:9"}}});
  config.task_type = "worker";
  config.task_index = 9;

  EXPECT_THAT(Cluster::Make(config),
              StatusIs(kInvalid, HasSubstr("0, 1, 2, 3, 4, 5, 6, 7, ...;")));
}

TEST(ClusterTest, ValuesOfTheWrongTypeHideNoOtherMistake) {
  const auto config = ReadTfConfig(
      R"({"cluster": {"worker": [7, "w", "localhost:1"],
                      "ps": ["127.0.0.1:1"], "chief": 1},
          "task": {"type": [], "index": "x"}, "rpc_layer": 1})",
      "f");
  ASSERT_OK(config);

  const auto cluster = Cluster::Make(*config);

  ASSERT_FALSE(cluster.ok());
  EXPECT_THAT(
      std::vector<std::string>(
          absl::StrSplit(cluster.status().message(), '\n')),
      UnorderedElementsAre(
          StartsWith("f: cluster.chief is 1"),
          StartsWith("f: cluster.worker[0] is 7"),
          StartsWith("f: task.type is an array"),
          StartsWith("f: task.index is \"x\""), StartsWith("f: rpc_layer is 1"),
          StartsWith("f: cluster.worker[1] is \"w\""),
          StartsWith("f: cluster.ps[0] and cluster.worker[2] are both")));
}

TEST(ClusterTest, AClusterOfTheWrongTypeIsNotSaidToBeMissing) {
  const auto config = ReadTfConfig(
      R"({"cluster": [], "task": {"type": "ps", "index": 0}})", "f");
  ASSERT_OK(config);

  EXPECT_THAT(Cluster::Make(*config),
              StatusIs(kInvalid, StartsWith("f: cluster is an array")));
}

}  // namespace
}  // namespace lockstep
