// TF_CONFIG with mistakes that job-launching tools and people make: the
// message.

#include <ostream>
#include <string>

#include "common/cluster/cluster.h"
#include "common/cluster/cluster_environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/cluster/environment_fixture.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Doc;
using ::lockstep::testing::ReadCluster;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

struct Refusal {
  std::string name;
  Environment variables;
  std::string message;  // a part of it
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.name;
}

std::string NameOf(const ::testing::TestParamInfo<Refusal>& info) {
  return info.param.name;
}

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST(NoVariableTest, KubeflowTFJobOfOneReplicaIsToldSo) {
  EXPECT_THAT(
      ReadCluster({{"PATH", "/bin"}}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("TF_CONFIG is not set")));
}

TEST_P(RefusalTest, NamesThePlaceAndTheFix) {
  EXPECT_THAT(ReadCluster(GetParam().variables),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().message)));
}

Environment Only(const std::string& tf_config) {
  return {{"TF_CONFIG", tf_config}};
}

INSTANTIATE_TEST_SUITE_P(
    Documents, RefusalTest,
    ::testing::Values(
        Refusal{"Empty", Only(""), "TF_CONFIG is empty"},
        Refusal{"NoJson", Only("cluster: {}"), "TF_CONFIG is not valid JSON"},
        Refusal{"AnArray", Only("[1]"),
                "TF_CONFIG is an array, but must be an object"},
        Refusal{"IndexNegative",
                Only(Doc(R"("task":{"type":"worker","index":-1})")),
                "task.index is -1, but must be a whole number from 0"},
        Refusal{"IndexWithAFraction",
                Only(Doc(R"("task":{"type":"worker","index":0.5})")),
                "task.index is 0.5, but must be a whole number from 0"},
        Refusal{"IndexOutOfRange",
                Only(Doc(R"("task":{"type":"worker","index":2})")),
                "cluster has no task worker 2; cluster.worker has the tasks "
                "0, 1; correct task, or add its address to cluster"},
        Refusal{"TypeUnknown", Only(Doc(R"("task":{"type":"gpu","index":0})")),
                "task.type is \"gpu\", but must be chief, worker, ps or "
                "evaluator"},
        Refusal{"TypeInCapitals",
                Only(Doc(R"("task":{"type":"Worker","index":0})")),
                "; did you mean worker?"},
        Refusal{"TypeMissing", Only(Doc(R"("task":{"index":0})")),
                "task.type is missing; set it"},
        Refusal{"IndexMissing", Only(Doc(R"("task":{"type":"ps"})")),
                "task.index is missing; set it"},
        Refusal{"TaskMissing", Only("{\"cluster\":{\"worker\":[\"w:1\"]}}"),
                "task.type is missing; set it"},
        Refusal{"ClusterMissing", Only(R"({"task":{"type":"ps","index":0}})"),
                "there is a task but no cluster; add cluster"},
        Refusal{"ChiefAndMaster",
                Only(R"({"cluster":{"chief":["c:1"],"master":["m:1"]},
                         "task":{"type":"chief","index":0}})"),
                "cluster has both chief and master; remove master"},
        Refusal{"MasterAndEvaluator", Only(R"({"cluster":{"master":["m:1"]},
                         "task":{"type":"evaluator","index":0}})"),
                "cluster has master, which excludes an evaluator; call it "
                "chief"},
        Refusal{"TwoChiefs", Only(R"({"cluster":{"chief":["c:1","c:2"]},
                         "task":{"type":"chief","index":0}})"),
                "cluster.chief has 2 tasks, but may have one; remove"},
        Refusal{"OneAddressTwice",
                Only(R"({"cluster":{"worker":["h:1"],"ps":["H.:1"]},
                         "task":{"type":"ps","index":0}})"),
                "are both \"h:1\"; give each task a port of its own"},
        Refusal{"PortMissing", Only(R"({"cluster":{"worker":["h"]},
                         "task":{"type":"worker","index":0}})"),
                "cluster.worker[0] is \"h\": the port is missing; write "
                "\"host:port\""},
        Refusal{"PortZero", Only(R"({"cluster":{"worker":["h:0"]},
                         "task":{"type":"worker","index":0}})"),
                "cluster.worker[0] is \"h:0\": port 0 is for `lockstep run`"},
        Refusal{"Ipv6WithoutBrackets", Only(R"({"cluster":{"worker":["::1:5"]},
                         "task":{"type":"worker","index":0}})"),
                "write an IPv6 address as \"[::1]:port\""},
        Refusal{"OtherScheme", Only(R"({"cluster":{"worker":["http://h:1"]},
                         "task":{"type":"worker","index":0}})"),
                "only the scheme \"grpc://\" is known"},
        Refusal{"AJobOfText", Only(R"({"cluster":{"worker":"h:1"},
                         "task":{"type":"worker","index":0}})"),
                "cluster.worker is \"h:1\", but must be a list"},
        Refusal{"SetTwice",
                {{"TF_CONFIG", "{}"}, {"TF_CONFIG", "{\"a\":1}"}},
                "TF_CONFIG is set more than once, with different values; "
                "remove all but one"},
        Refusal{
            "ClusterSpecOfJobsWithoutATask",
            {{"CLUSTER_SPEC", R"({"worker":["w:1"]})"}, {"JOB_NAME", "worker"}},
            "TASK_INDEX is not set, so this process's task is not known"},
        Refusal{"DynamicChiefIsNotInItsOwnCluster",
                Only(R"({"cluster":{"worker":{},"ps":[]},
                         "task":{"type":"chief","index":0}})"),
                "cluster has no task chief 0; cluster.chief is empty; correct "
                "task, or add its address to cluster"}),
    NameOf);

TEST(TfConfigRefusalsTest, NoRefusalEchoesAWholeDocument) {
  const std::string secret(200, 's');
  for (const std::string& text :
       {secret, "\"" + secret + "\"", "{\"cluster\":\"" + secret + "\"}",
        "{\"" + secret + "\":1, \"cluster\":[]}"}) {
    const absl::StatusOr<Cluster> cluster = ReadCluster(Only(text));
    ASSERT_FALSE(cluster.ok());
    EXPECT_EQ(cluster.status().message().find(secret), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
