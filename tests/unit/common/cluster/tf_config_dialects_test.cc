// TF_CONFIG as job-launching tools write it, and the edge cases of each: the
// resulting view of a task.

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/cluster/environment_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Doc;
using ::lockstep::testing::ReadCluster;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Returns the cluster as a task sees it, in one line.
std::string View(const Cluster& cluster) {
  std::vector<std::string> jobs;
  for (const TaskType type : {TaskType::kChief, TaskType::kWorker,
                              TaskType::kPs, TaskType::kEvaluator}) {
    std::vector<std::string> tasks;
    for (const TaskId& task : cluster.Tasks(type)) {
      tasks.push_back(
          absl::StrCat(task.index, "=", cluster.Address(task).value_or("?")));
    }
    if (tasks.empty()) continue;
    jobs.push_back(
        absl::StrCat(TaskTypeName(type), " ", absl::StrJoin(tasks, " ")));
  }
  return absl::StrCat(cluster.IsLocal() ? "local" : cluster.self().ToString(),
                      "; chief is ", cluster.chief().ToString(), "; ",
                      cluster.num_ps(), " ps, ", cluster.num_workers(),
                      " workers; ", absl::StrJoin(jobs, ", "));
}

struct Dialect {
  std::string name;
  Environment variables;
  std::string view;                        // in the form of View()
  std::vector<std::string> warnings = {};  // all of them
};

std::ostream& operator<<(std::ostream& out, const Dialect& dialect) {
  return out << dialect.name;
}

std::string NameOf(const ::testing::TestParamInfo<Dialect>& info) {
  return info.param.name;
}

// Without a ps each task that computes is a worker with a mirror, by its id.
void ExpectMirrors(const Cluster& cluster) {
  const absl::StatusOr<Cluster> mirrored = cluster.WithMirrors();
  ASSERT_OK(mirrored);
  EXPECT_EQ(mirrored->num_workers(),
            cluster.num_workers() + (cluster.has_chief() ? 1 : 0));
  if (cluster.self().type == TaskType::kEvaluator) return;
  EXPECT_EQ(mirrored->self().index, *cluster.IdInCluster(cluster.self()));
}

class DialectTest : public ::testing::TestWithParam<Dialect> {};

TEST_P(DialectTest, IsSeenAs) {
  const absl::StatusOr<Cluster> cluster = ReadCluster(GetParam().variables);

  ASSERT_OK(cluster);
  EXPECT_EQ(View(*cluster), GetParam().view);
  EXPECT_THAT(cluster->warnings(), ElementsAreArray(GetParam().warnings));
  if (cluster->HasMirrors()) ExpectMirrors(*cluster);
}

INSTANTIATE_TEST_SUITE_P(
    Producers, DialectTest,
    ::testing::Values(
        Dialect{
            "KubeflowTFJob",
            {{"TF_CONFIG",
              R"({"cluster":{"chief":["j-chief-0.ns.svc:2222"],
                  "ps":["j-ps-0.ns.svc:2222"],
                  "worker":["j-worker-0.ns.svc:2222"]},
                  "task":{"type":"ps","index":0},"environment":"cloud"})"}},
            "ps 0; chief is chief 0; 1 ps, 1 workers; "
            "chief 0=j-chief-0.ns.svc:2222, worker 0=j-worker-0.ns.svc:2222, "
            "ps 0=j-ps-0.ns.svc:2222"},
        Dialect{"KubeflowTFJobWithADomainAndAPortPerRole",
                {{"TF_CONFIG",
                  R"({"cluster":{"ps":["j-ps-0.ns.svc.cluster.local.:2223"],
                      "worker":["j-worker-0.ns.svc.cluster.local.:2222"]},
                      "task":{"type":"worker","index":0},
                      "environment":"cloud"})"}},
                "worker 0; chief is worker 0; 1 ps, 1 workers; "
                "worker 0=j-worker-0.ns.svc.cluster.local.:2222, "
                "ps 0=j-ps-0.ns.svc.cluster.local.:2223"},
        Dialect{"NoCluster",
                {{"TF_CONFIG", "{}"}},
                "local; chief is worker 0; 0 ps, 1 workers; "},
        Dialect{"KubeflowTFJobOldOperatorLeavesTheEvaluatorOut",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:2222"],"ps":["p:2222"],
                      "worker":["w:2222"]},
                      "task":{"type":"evaluator","index":0},
                      "environment":"cloud"})"}},
                "evaluator 0; chief is chief 0; 0 ps, 0 workers; "
                "chief 0=c:2222, worker 0=w:2222, ps 0=p:2222"},
        Dialect{"KubeflowTFJobNewOperatorHasTheEvaluatorIn",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:2222"],"evaluator":["e:2222"],
                      "ps":["p:2222"],"worker":["w:2222"]},
                      "task":{"type":"evaluator","index":0},
                      "environment":"cloud"})"}},
                "evaluator 0; chief is chief 0; 0 ps, 0 workers; "
                "chief 0=c:2222, worker 0=w:2222, ps 0=p:2222, "
                "evaluator 0=e:2222"},
        Dialect{"KubeflowDynamicWorker",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":{"1":"w1:2222"},
                      "ps":["p0:2222","p1:2222"]},
                      "task":{"type":"worker","index":1}})"}},
                "worker 1; chief is worker 0; 2 ps, 1 workers; "
                "worker 1=w1:2222, ps 0=p0:2222 1=p1:2222"},
        Dialect{"KubeflowDynamicWorkerOfAnOldOperator",
                {{"TF_CONFIG",
                  R"({"sparseCluster":{"worker":{"0":"w0:2222"},
                      "ps":["p0:2222"]},
                      "task":{"type":"worker","index":0}})"}},
                "worker 0; chief is worker 0; 1 ps, 1 workers; "
                "worker 0=w0:2222, ps 0=p0:2222"},
        Dialect{"KubeflowDynamicPsSeesOnlyItselfAtPlaceZero",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":{},"ps":["p3:2222"]},
                      "task":{"type":"ps","index":3}})"}},
                "ps 3; chief is worker 0; 1 ps, 0 workers; ps 3=p3:2222",
                {"TF_CONFIG: cluster.ps holds one address; taken for that of "
                 "ps 3"}},
        Dialect{"KubeflowDynamicEvaluatorSeesNobody",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":{},"ps":[]},
                      "task":{"type":"evaluator","index":0}})"}},
                "evaluator 0; chief is worker 0; 0 ps, 0 workers; "},
        Dialect{"AiPlatformTrainingWithAMaster",
                {{"TF_CONFIG",
                  R"({"cluster":{"master":["m:2222"],"ps":["p:2222"],
                      "worker":["w0:2222","w1:2222"]},
                      "task":{"type":"master","index":0,"trial":"1",
                              "cloud":"x1a2"},
                      "job":{"scale_tier":"CUSTOM","args":["--a","b"]},
                      "environment":"cloud"})"}},
                "chief 0; chief is chief 0; 1 ps, 2 workers; chief 0=m:2222, "
                "worker 0=w0:2222 1=w1:2222, ps 0=p:2222",
                {"TF_CONFIG: task.type \"master\" is taken for chief",
                 "TF_CONFIG: cluster.master is taken for cluster.chief"}},
        Dialect{"VertexAi",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:2222"],"worker":["w:2222"],
                      "ps":["p:2222"],"evaluator":["e:2222"]},
                      "task":{"type":"worker","index":0},
                      "job":"{\"worker_pool_specs\":[]}",
                      "environment":"cloud"})"},
                 {"CLUSTER_SPEC", "{\"cluster\":{}}"}},
                "worker 0; chief is chief 0; 1 ps, 1 workers; chief 0=c:2222, "
                "worker 0=w:2222, ps 0=p:2222, evaluator 0=e:2222"},
        Dialect{"VertexAiClusterSpecAlone",
                {{"CLUSTER_SPEC",
                  R"({"cluster":{"workerpool0":["c:2222"],
                      "workerpool1":["w0:2222","w1:2222"],
                      "workerpool2":["p:2222"]},
                      "task":{"type":"workerpool1","index":1},
                      "environment":"cloud"})"}},
                "worker 1; chief is chief 0; 1 ps, 2 workers; chief 0=c:2222, "
                "worker 0=w0:2222 1=w1:2222, ps 0=p:2222",
                {"TF_CONFIG is not set; CLUSTER_SPEC is taken instead",
                 "CLUSTER_SPEC: cluster.workerpool0 is taken for "
                 "cluster.chief",
                 "CLUSTER_SPEC: cluster.workerpool1 is taken for "
                 "cluster.worker",
                 "CLUSTER_SPEC: cluster.workerpool2 is taken for "
                 "cluster.ps"}},
        Dialect{"SageMakerHasAPsOnEveryHost",
                {{"TF_CONFIG",
                  R"({"cluster":{"master":["algo-1:2222"],
                      "worker":["algo-2:2222"],
                      "ps":["algo-1:2223","algo-2:2223"]},
                      "task":{"type":"ps","index":1},
                      "environment":"cloud"})"}},
                "ps 1; chief is chief 0; 2 ps, 1 workers; "
                "chief 0=algo-1:2222, worker 0=algo-2:2222, "
                "ps 0=algo-1:2223 1=algo-2:2223",
                {"TF_CONFIG: cluster.master is taken for cluster.chief"}},
        Dialect{"SageMakerOfWorkersOnly",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["algo-1:8890","algo-2:8890"]},
                      "task":{"type":"worker","index":1}})"}},
                "worker 1; chief is worker 0; 0 ps, 2 workers; "
                "worker 0=algo-1:8890 1=algo-2:8890"},
        Dialect{"Volcano",
                {{"TF_CONFIG",
                  R"({"cluster":{"ps":["j-ps-0.j:2222","j-ps-1.j:2222"],
                      "worker":["j-worker-0.j:2222"]},
                      "task":{"type":"ps","index":1}})"}},
                "ps 1; chief is worker 0; 2 ps, 1 workers; "
                "worker 0=j-worker-0.j:2222, ps 0=j-ps-0.j:2222 "
                "1=j-ps-1.j:2222"},
        Dialect{"KubeDlOnTheHostNetworkHasAnotherPortForItself",
                {{"TF_CONFIG",
                  R"({"cluster":{"ps":["j-ps-0:2222"],
                      "worker":["j-worker-0:31234","j-worker-1:2222"]},
                      "task":{"type":"worker","index":0},
                      "environment":"cloud"})"}},
                "worker 0; chief is worker 0; 1 ps, 2 workers; "
                "worker 0=j-worker-0:31234 1=j-worker-1:2222, "
                "ps 0=j-ps-0:2222"},
        Dialect{"DlRover",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["j-edljob-chief-0:3333"],
                      "ps":["j-edljob-ps-0:3333"],
                      "worker":["j-edljob-worker-0:3333"],"evaluator":null},
                      "task":{"type":"chief","index":0}})"}},
                "chief 0; chief is chief 0; 1 ps, 1 workers; "
                "chief 0=j-edljob-chief-0:3333, "
                "worker 0=j-edljob-worker-0:3333, ps 0=j-edljob-ps-0:3333"},
        Dialect{
            "TonYWithTheEvaluatorStripped",
            {{"TF_CONFIG",
              R"({"cluster":{"ps":["n1:43001"],"worker":["n2:43002"]},
                      "task":{"type":"worker","index":0}})"},
             {"JOB_NAME", "worker"},
             {"TASK_INDEX", "0"},
             {"CLUSTER_SPEC", R"({"ps":["n1:43001"],"worker":["n2:43002"]})"}},
            "worker 0; chief is worker 0; 1 ps, 1 workers; "
            "worker 0=n2:43002, ps 0=n1:43001"},
        Dialect{"TonYClusterSpecAlone",
                {{"JOB_NAME", "ps"},
                 {"TASK_INDEX", "1"},
                 {"CLUSTER_SPEC",
                  R"({"ps":["n1:43001","n3:1"],"worker":["n2:43002"]})"}},
                "ps 1; chief is worker 0; 2 ps, 1 workers; "
                "worker 0=n2:43002, ps 0=n1:43001 1=n3:1",
                {"TF_CONFIG is not set; CLUSTER_SPEC is taken instead"}},
        Dialect{"TensorFlowOnSpark",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["10.0.0.1:34567"],
                      "worker":["10.0.0.2:45678"]},
                      "task":{"type":"worker","index":0},
                      "environment":"cloud"})"}},
                "worker 0; chief is chief 0; 0 ps, 1 workers; "
                "chief 0=10.0.0.1:34567, worker 0=10.0.0.2:45678"},
        Dialect{"SparkTensorFlowDistributor",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["10.0.0.1:5","10.0.0.2:6"]},
                      "task":{"type":"worker","index":1}})"}},
                "worker 1; chief is worker 0; 0 ps, 2 workers; "
                "worker 0=10.0.0.1:5 1=10.0.0.2:6"},
        Dialect{"TfYarnSaysGoogle",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:1"],"ps":["p:1"]},
                      "task":{"type":"chief","index":0},
                      "environment":"google"})"}},
                "chief 0; chief is chief 0; 1 ps, 0 workers; chief 0=c:1, "
                "ps 0=p:1"},
        Dialect{"EcosystemTemplateHasAnIndexInQuotes",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["w0:5000","w1:5000"],
                      "ps":["p0:5000"]},
                      "task":{"type":"worker","index":"1"},
                      "environment":""})"}},
                "worker 1; chief is worker 0; 1 ps, 2 workers; "
                "worker 0=w0:5000 1=w1:5000, ps 0=p0:5000"}),
    NameOf);

constexpr char kTwoView[] =
    "worker 1; chief is worker 0; 1 ps, 2 workers; worker 0=w:1 1=w:2, "
    "ps 0=p:1";

INSTANTIATE_TEST_SUITE_P(
    EdgeCases, DialectTest,
    ::testing::Values(
        Dialect{
            "ByteOrderMark",
            {{"TF_CONFIG",
              "\xEF\xBB\xBF" + Doc(R"("task":{"type":"worker","index":1})")}},
            kTwoView},
        Dialect{
            "DoublyEncoded",
            {{"TF_CONFIG", R"("{\"cluster\":{\"worker\":[\"w:1\",\"w:2\"],)"
                           R"(\"ps\":[\"p:1\"]},)"
                           R"(\"task\":{\"type\":\"worker\",\"index\":1}}")"}},
            kTwoView,
            {"TF_CONFIG: the document is a JSON string that holds the "
             "document; remove the outer quotes"}},
        Dialect{"FloatIndex",
                {{"TF_CONFIG", Doc(R"("task":{"type":"worker","index":1.0})")}},
                kTwoView},
        Dialect{
            "UnknownKeysAreNamedButNotTheirValues",
            {{"TF_CONFIG",
              Doc(R"("task":{"type":"worker","index":1,"k":"s3c"},"clutser":1)")}},
            kTwoView,
            {"TF_CONFIG: the key \"task.k\" is not known; ignored",
             "TF_CONFIG: the key \"clutser\" is not known; ignored; did you "
             "mean cluster?"}},
        Dialect{"SparseMapWithStringKeys",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:1"],"worker":{"2":"w:3"},
                      "ps":{"0":"p:1","1":"p:2"}},
                      "task":{"type":"worker","index":2}})"}},
                "worker 2; chief is chief 0; 2 ps, 1 workers; chief 0=c:1, "
                "worker 2=w:3, ps 0=p:1 1=p:2"},
        Dialect{"EmptyAndNullRoles",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":[],"worker":["w:1"],"ps":null},
                      "task":{"type":"worker","index":0}})"}},
                "worker 0; chief is worker 0; 0 ps, 1 workers; worker 0=w:1"},
        Dialect{"PsButNoWorker",
                {{"TF_CONFIG",
                  R"({"cluster":{"chief":["c:1"],"ps":["p:1"]},
                      "task":{"type":"ps","index":0}})"}},
                "ps 0; chief is chief 0; 1 ps, 0 workers; chief 0=c:1, "
                "ps 0=p:1"},
        Dialect{"EvaluatorAlone",
                {{"TF_CONFIG",
                  R"({"cluster":{"evaluator":["e:1"]},
                      "task":{"type":"evaluator","index":0}})"}},
                "evaluator 0; chief is worker 0; 0 ps, 0 workers; "
                "evaluator 0=e:1"},
        Dialect{"OneHostForAPsAndAWorker",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["h:1"],"ps":["h:2"]},
                      "task":{"type":"ps","index":0}})"}},
                "ps 0; chief is worker 0; 1 ps, 1 workers; worker 0=h:1, "
                "ps 0=h:2"},
        Dialect{"Ipv6SchemeAndTrailingDot",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["[fe80::1%eth0]:1",
                      "grpc://w.:2"]},"task":{"type":"worker","index":0}})"}},
                "worker 0; chief is worker 0; 0 ps, 2 workers; "
                "worker 0=[fe80::1%eth0]:1 1=w.:2",
                {"TF_CONFIG: cluster.worker[1] is \"grpc://w.:2\"; the scheme "
                 "is ignored"}},
        Dialect{"UpperCaseRole",
                {{"TF_CONFIG",
                  R"({"cluster":{"worker":["w:1"],"PS":["p:1"]},
                      "task":{"type":"worker","index":0}})"}},
                "worker 0; chief is worker 0; 0 ps, 1 workers; worker 0=w:1",
                {"TF_CONFIG: cluster has the job \"PS\", which is none of "
                 "chief, worker, ps, evaluator; ignored; did you mean ps?"}},
        Dialect{"SetTwiceWithOneValue",
                {{"TF_CONFIG", Doc(R"("task":{"type":"worker","index":1})")},
                 {"TF_CONFIG", Doc(R"("task":{"type":"worker","index":1})")}},
                kTwoView}),
    NameOf);

TEST(TfConfigDialectsTest, TaskThatCannotKnowTheChiefNamesTheMissingEntry) {
  const absl::StatusOr<Cluster> cluster =
      ReadCluster({{"TF_CONFIG",
                    R"({"cluster":{"worker":{"1":"w1:2222"},"ps":["p0:2222"]},
                 "task":{"type":"worker","index":1}})"}});
  ASSERT_OK(cluster);
  EXPECT_THAT(cluster->Address(cluster->chief()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no task is known to run the chief; add "
                                 "cluster.chief")));
}

}  // namespace
}  // namespace lockstep
