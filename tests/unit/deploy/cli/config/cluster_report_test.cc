#include "deploy/cli/config/cluster_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Cluster Make(const std::string& json) {
  const absl::StatusOr<TfConfig> config = ParseTfConfig(json, "TF_CONFIG");
  EXPECT_OK(config);
  absl::StatusOr<Cluster> cluster = Cluster::Make(*config);
  EXPECT_OK(cluster);
  return *std::move(cluster);
}

constexpr char kFull[] =
    R"({"cluster":{"chief":["c.example:2222"],"ps":["p0:2222"],
        "worker":["w0:2222","w1:2222"],"gpu":["g:1"]},
        "task":{"type":"worker","index":1}})";

TEST(ClusterReportTest, ListsTasksWithTheirProgramsAndIgnoredEntries) {
  EXPECT_EQ(FormatClusterReport(Make(kFull), {}, {}, 80),
            "TF_CONFIG: as worker 1 sees it\n"
            "chief: chief 0, at c.example:2222\n"
            "counts: 1 chief, 2 workers, 1 ps, 0 evaluators\n"
            "task      id  address         program\n"
            "chief 0    0  c.example:2222  chief\n"
            "worker 0   1  w0:2222         worker\n"
            "worker 1   2  w1:2222         worker     this one\n"
            "ps 0       -  p0:2222         ps_server\n"
            "warning: TF_CONFIG: cluster has the job \"gpu\", which is none of "
            "chief, worker,\n"
            "  ps, evaluator; ignored\n"
            "no mistakes\n");
}

TEST(ClusterReportTest, ConnectionsHaveAColumn) {
  EXPECT_THAT(FormatClusterReport(Make(kFull),
                                  {{{TaskType::kPs, 0}, "refused"}}, {}, 80),
              HasSubstr("ps 0       -  p0:2222         ps_server  refused\n"));
}

TEST(ClusterReportTest, AWorkerThatHostsTheChiefIsSaidTo) {
  const Cluster cluster = Make(
      R"({"cluster":{"ps":["p:1"],"worker":["w:1"]},
          "task":{"type":"ps","index":0}})");

  EXPECT_THAT(FormatClusterReport(cluster, {}, {}, 80),
              HasSubstr("chief: worker 0, as there is no chief task, at w:1"));
}

TEST(ClusterReportTest, ALocalTaskHasNoTable) {
  EXPECT_EQ(FormatClusterReport(Make("{}"), {}, {}, 80),
            "TF_CONFIG: no cluster, a single local task\nno mistakes\n");
}

TEST(ClusterReportTest, AnEvaluatorOutsideOfTheClusterHasARow) {
  const Cluster cluster = Make(
      R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1"]},
          "task":{"type":"evaluator","index":0}})");

  const std::string text = FormatClusterReport(cluster, {}, {}, 80);

  EXPECT_THAT(text, HasSubstr("1 ps, 1 evaluator\n"));
  EXPECT_THAT(text, HasSubstr("evaluator 0   0  -        worker --evaluate  "
                              "this one\n"));
}

TEST(ClusterReportTest, NoLineIsWiderThanAsked) {
  const std::string host(70, 'h');
  const Cluster cluster =
      Make(absl::StrCat("{\"cluster\":{\"ps\":[\"", host,
                        ":1\"],\"worker\":[\"w:1\"],\"odd job\":[]},"
                        "\"task\":{\"type\":\"ps\",\"index\":0}}"));
  const std::string text =
      FormatClusterReport(cluster, {}, {"a mistake that is a long one"}, 40);

  for (const auto line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), 40u) << line;
  }
}

TEST(ClusterReportTest, WithoutPsAllThatComputeAreWorkersWithMirrors) {
  const Cluster cluster = Make(
      R"({"cluster":{"chief":["c:1"],"worker":["w:1"],"evaluator":["e:1"]},
          "task":{"type":"chief","index":0}})");

  EXPECT_THAT(FindMistakes(cluster), IsEmpty());
  EXPECT_EQ(
      FormatClusterReport(cluster, {}, {}, 80),
      "TF_CONFIG: as chief 0 sees it\n"
      "chief: chief 0, at c:1\n"
      "counts: 1 chief, 1 worker, 0 ps, 1 evaluator\n"
      "no ps: chief and workers compute, each with a copy of the variables\n"
      "task         id  address  program\n"
      "chief 0       0  c:1      worker             this one\n"
      "worker 0      1  w:1      worker\n"
      "evaluator 0   0  e:1      worker --evaluate\n"
      "no mistakes\n");
}

TEST(ClusterReportTest, AClusterThatCannotTrainHasMistakes) {
  EXPECT_THAT(FindMistakes(Make(kFull)), IsEmpty());
  EXPECT_THAT(FindMistakes(Make("{}")),
              ElementsAre(HasSubstr("there is no cluster")));
  EXPECT_THAT(FindMistakes(Make(
                  R"({"cluster":{"worker":{"1":"w:1"}},
                      "task":{"type":"worker","index":1}})")),
              ElementsAre(HasSubstr("cluster.worker lacks tasks below 1"),
                          HasSubstr("add cluster.chief")));
  EXPECT_THAT(FindMistakes(Make(
                  R"({"cluster":{"worker":{"1":"w:1"},"ps":["p:1"]},
                      "task":{"type":"worker","index":1}})")),
              ElementsAre(HasSubstr("add cluster.chief")));
}

}  // namespace
}  // namespace lockstep::cli
