#include "deploy/cli/tasks/task_plan.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(TaskPlanTest, AnInstanceIsAJobAndAnIndex) {
  EXPECT_THAT(ParseTaskInstance("ps", "fashion.1"),
              IsOkAndHolds(TaskInstance{"fashion", {TaskType::kPs, 1}}));
  EXPECT_THAT(ParseTaskInstance("chief", "fashion"),
              IsOkAndHolds(TaskInstance{"fashion", {TaskType::kChief, 0}}));
  EXPECT_THAT(
      ParseTaskInstance("worker", "v1.2-b_c.x.10"),
      IsOkAndHolds(TaskInstance{"v1.2-b_c.x", {TaskType::kWorker, 10}}));
}

TEST(TaskPlanTest, AnInstanceThatIsNoneIsRefused) {
  for (const char* instance : {"", ".1", "..", "../a", "a/b", "-a", "a b.1"}) {
    EXPECT_THAT(ParseTaskInstance("ps", instance), StatusIs(kInvalid))
        << instance;
  }
  EXPECT_THAT(ParseTaskInstance("ps", "a.1000000"),
              StatusIs(kInvalid, HasSubstr("is above 999999")));
  EXPECT_THAT(ParseTaskInstance("gpu", "a"),
              StatusIs(kInvalid, HasSubstr("not one of chief")));
}

TEST(TaskPlanTest, APodsIndexStandsBehindItsLastDash) {
  EXPECT_THAT(IndexOfPodName("fashion-worker-12"), IsOkAndHolds(12));
  EXPECT_THAT(IndexOfPodName("fashion"), StatusIs(kInvalid));
  EXPECT_THAT(IndexOfPodName("fashion-abcde"), StatusIs(kInvalid));
  EXPECT_THAT(IndexOfPodName("fashion-"), StatusIs(kInvalid));
}

TaskPlanOptions Options(TaskType type, int index) {
  return {.instance = {"fashion", {type, index}},
          .cluster_json = R"({"cluster":{"chief":["c:1"],
                              "ps":["p:1"],"worker":["w:1","w:2"]}})",
          .cluster_path = "/etc/cluster.json",
          .job_path = "/etc/job.textproto",
          .state_dir = "/run/state",
          .program_dir = "/bin"};
}

constexpr char kCluster[] =
    R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1","w:2"]},)";

TEST(TaskPlanTest, EachRoleGetsItsProgramAndFlags) {
  EXPECT_THAT(
      PlanTask(Options(TaskType::kChief, 0)),
      IsOkAndHolds(TaskPlan{
          "/bin/chief",
          {"--job", "/etc/job.textproto"},
          std::string(kCluster) + R"("task":{"index":0,"type":"chief"}})"}));
  EXPECT_THAT(PlanTask(Options(TaskType::kPs, 0)),
              IsOkAndHolds(TaskPlan{"/bin/ps_server",
                                    {"--state_dir", "/run/state"},
                                    std::string(kCluster) +
                                        R"("task":{"index":0,"type":"ps"}})"}));
  const auto worker = PlanTask(Options(TaskType::kWorker, 1));
  ASSERT_OK(worker);
  EXPECT_EQ(worker->program, "/bin/worker");
  EXPECT_THAT(worker->args, IsEmpty());
  const auto evaluator = PlanTask(Options(TaskType::kEvaluator, 0));
  ASSERT_OK(evaluator);
  EXPECT_THAT(evaluator->args, ElementsAre("--evaluate"));
}

TEST(TaskPlanTest, AWorkerThatHostsTheChiefGetsTheJob) {
  TaskPlanOptions options = Options(TaskType::kWorker, 0);
  options.cluster_json = R"({"cluster":{"ps":["p:1"],"worker":["w:1"]}})";
  options.more_args = {"--compute_threads", "2"};

  const auto plan = PlanTask(options);

  ASSERT_OK(plan);
  EXPECT_THAT(plan->args, ElementsAre("--job", "/etc/job.textproto",
                                      "--compute_threads", "2"));
}

TEST(TaskPlanTest, AStateDirectoryAmongTheProgramsFlagsIsTheOnlyOne) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--log_level", "debug", "--state_dir", "/s"},
        std::vector<std::string>{"--state_dir=/s"}}) {
    TaskPlanOptions options = Options(TaskType::kPs, 0);
    options.more_args = flags;

    const auto plan = PlanTask(options);

    ASSERT_OK(plan);
    EXPECT_EQ(plan->args, flags);
  }
}

TEST(TaskPlanTest, WithoutServersTheChiefIsAWorkerWithAMirror) {
  TaskPlanOptions options = Options(TaskType::kChief, 0);
  options.cluster_json = R"({"cluster":{"chief":["c:1"],"worker":["w:1"]}})";

  const auto plan = PlanTask(options);

  ASSERT_OK(plan);
  EXPECT_EQ(plan->program, "/bin/worker");
  EXPECT_THAT(plan->args, ElementsAre("--job", "/etc/job.textproto",
                                      "--state_dir", "/run/state"));
}

TEST(TaskPlanTest, ACommandOfTheUserTakesThePartOfAWorkerOrEvaluator) {
  for (const TaskType type : {TaskType::kWorker, TaskType::kEvaluator}) {
    TaskPlanOptions options = Options(type, 0);
    options.command = {"/usr/bin/python3", "train.py", "--rate=1"};

    const auto plan = PlanTask(options);

    ASSERT_OK(plan);
    EXPECT_EQ(plan->program, "/usr/bin/python3");
    EXPECT_THAT(plan->args, ElementsAre("train.py", "--rate=1"));
    EXPECT_THAT(plan->tf_config, HasSubstr("\"task\""));
  }
}

TEST(TaskPlanTest, ACommandCannotBeAServerNorAChiefThatDoesNotCompute) {
  for (const TaskType type : {TaskType::kPs, TaskType::kChief}) {
    TaskPlanOptions options = Options(type, 0);
    options.command = {"/usr/bin/python3"};
    EXPECT_THAT(PlanTask(options),
                StatusIs(kInvalid,
                         HasSubstr(absl::StrCat("not ", TaskTypeName(type)))));
  }
}

TEST(TaskPlanTest, ACommandThatHostsRolesFindsTheirOptionsInItsEnvironment) {
  const auto environment = [](TaskType type, int index, const char* cluster) {
    TaskPlanOptions options = Options(type, index);
    options.state_dir = "/run/state";
    options.command = {"/usr/bin/python3"};
    options.cluster_json = cluster;
    return PlanTask(options).value().environment;
  };
  const auto job = Pair("LOCKSTEP_JOB", "/etc/job.textproto");
  const auto state = Pair("LOCKSTEP_STATE_DIR", "/run/state");
  constexpr char kMirrors[] =
      R"({"cluster":{"chief":["c:1"],"worker":["w:1"]}})";
  constexpr char kNoChief[] = R"({"cluster":{"ps":["p:1"],"worker":["w:1"]}})";

  EXPECT_THAT(environment(TaskType::kChief, 0, kMirrors),
              UnorderedElementsAre(job, state));
  EXPECT_THAT(environment(TaskType::kWorker, 0, kMirrors),
              UnorderedElementsAre(state));
  EXPECT_THAT(environment(TaskType::kWorker, 0, kNoChief),
              UnorderedElementsAre(job));
}

TEST(TaskPlanTest, ATaskOutsideTheClusterIsRefused) {
  EXPECT_THAT(PlanTask(Options(TaskType::kPs, 1)),
              StatusIs(kInvalid, HasSubstr("cluster has no task ps 1")));
}

}  // namespace
}  // namespace lockstep::cli
