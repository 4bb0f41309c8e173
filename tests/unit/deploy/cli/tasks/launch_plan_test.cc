#include "deploy/cli/tasks/launch_plan.h"

#include "common/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr TaskId kPs = {TaskType::kPs, 1};
constexpr TaskId kChief = {TaskType::kChief, 0};
constexpr TaskId kWorker = {TaskType::kWorker, 0};
constexpr TaskId kEvaluator = {TaskType::kEvaluator, 0};

const LaunchOptions kOptions = {.program_dir = "/bin/ls",
                                .job_file = "job.textproto",
                                .settings = {"seed=2", "batch_size=5"},
                                .log_dir = "/logs",
                                .state_dir = "/state",
                                .log_level = "debug",
                                .compute_threads = 3};

TaskLaunch PlanOne(TaskId task, TaskId chief) {
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"worker", {"a:1"}}});
  cluster.tasks = {task};
  cluster.chief = chief;
  return PlanLaunches(cluster, kOptions).front();
}

TEST(LaunchPlanTest, AServerHasADirectoryOfItsOwn) {
  const TaskLaunch launch = PlanOne(kPs, kChief);

  EXPECT_EQ(launch.program, "/bin/ls/ps_server");
  EXPECT_EQ(launch.log_path, "/logs/ps-1.log");
  EXPECT_EQ(launch.state_dir, "/state/ps-1");
  EXPECT_THAT(launch.args, ElementsAre("--log_level", "debug", "--state_dir",
                                       "/state/ps-1"));
}

TEST(LaunchPlanTest, WithoutServersTheChiefIsAWorkerWithAMirror) {
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"chief", {"a:1"}}, {"worker", {"b:1"}}});
  cluster.tasks = {kChief, kWorker, kEvaluator};
  cluster.chief = kChief;
  cluster.hosts_mirrors = true;

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, kOptions);

  EXPECT_EQ(launches[0].program, "/bin/ls/worker");
  EXPECT_EQ(launches[0].state_dir, "/state/chief-0");
  EXPECT_THAT(launches[0].args, IsSupersetOf({"--state_dir", "/state/chief-0",
                                              "--job", "--compute_threads"}));
  EXPECT_THAT(launches[1].args,
              IsSupersetOf({"--state_dir", "/state/worker-0"}));
  EXPECT_THAT(launches[1].args, Not(Contains("--job")));
  EXPECT_THAT(launches[2].args, Not(Contains("--state_dir")));
}

TEST(LaunchPlanTest, ProgramsWithoutServersHostTheChiefAndTheirMirrors) {
  LaunchOptions options = kOptions;
  options.worker_command = {"/usr/bin/python3", "train.py"};
  options.status_address = "127.0.0.1:8080";
  options.beginning = {"--from", "7"};
  options.tls_dir = "/tls/{role}-{index}";
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"chief", {"a:1"}}, {"worker", {"b:1"}}});
  cluster.tasks = {kChief, kWorker};
  cluster.chief = kChief;
  cluster.hosts_mirrors = true;

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);

  for (const TaskLaunch& launch : launches) {
    EXPECT_EQ(launch.program, "/usr/bin/python3");
    EXPECT_THAT(launch.args, ElementsAre("train.py"));
    EXPECT_THAT(launch.begin_args, IsEmpty());
    // Both are workers, with certificates of workers.
    EXPECT_THAT(launch.environment,
                Contains(Pair("LOCKSTEP_TLS_DIR", "/tls/{role}-{index}")));
  }
  EXPECT_THAT(
      launches[0].environment,
      IsSupersetOf({Pair("LOCKSTEP_JOB", "job.textproto"),
                    Pair("LOCKSTEP_SET", "seed=2\nbatch_size=5"),
                    Pair("LOCKSTEP_STATE_DIR", "/state/chief-0"),
                    Pair("LOCKSTEP_STATUS_ADDRESS", "127.0.0.1:8080")}));
  EXPECT_THAT(launches[0].begin_environment,
              ElementsAre(Pair("LOCKSTEP_BEGIN", "7")));
  EXPECT_THAT(launches[1].environment,
              Contains(Pair("LOCKSTEP_STATE_DIR", "/state/worker-0")));
  EXPECT_THAT(launches[1].environment, Not(Contains(Key("LOCKSTEP_JOB"))));
  EXPECT_THAT(launches[1].begin_environment, IsEmpty());
  options.beginning = {"--fresh"};
  EXPECT_THAT(PlanLaunches(cluster, options)[0].begin_environment,
              ElementsAre(Pair("LOCKSTEP_BEGIN", "fresh")));
}

TEST(LaunchPlanTest, TheChiefGetsTheJob) {
  const TaskLaunch launch = PlanOne(kChief, kChief);

  EXPECT_EQ(launch.program, "/bin/ls/chief");
  EXPECT_EQ(launch.state_dir, "");
  EXPECT_THAT(launch.args,
              ElementsAre("--log_level", "debug", "--job", "job.textproto",
                          "--set", "seed=2", "--set", "batch_size=5"));
}

TEST(LaunchPlanTest, TheProcessThatHostsTheChiefServesThePage) {
  LaunchOptions options = kOptions;
  options.status_address = "127.0.0.1:8080";
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"worker", {"a:1", "b:1"}}});
  cluster.tasks = {kWorker, {TaskType::kWorker, 1}};
  cluster.chief = kWorker;

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);

  EXPECT_THAT(launches[0].args,
              IsSupersetOf({"--status_address", "127.0.0.1:8080"}));
  EXPECT_THAT(launches[1].args, Not(Contains("--status_address")));
}

TEST(LaunchPlanTest, ProgramsOfTheUserFindAGivenLogLevel) {
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"worker", {"a:1"}}});
  cluster.tasks = {kChief, kWorker};
  cluster.chief = kChief;
  LaunchOptions options = kOptions;
  options.worker_command = {"/usr/bin/python3", "train.py"};

  EXPECT_EQ(
      PlanLaunches(cluster, options)[1].environment.count("LOCKSTEP_LOG_LEVEL"),
      0u);
  options.own_log_level = "debug";
  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);
  EXPECT_EQ(launches[0].environment.count("LOCKSTEP_LOG_LEVEL"), 0u);
  EXPECT_EQ(launches[1].environment.at("LOCKSTEP_LOG_LEVEL"), "debug");
}

TEST(LaunchPlanTest, ProgramsOfTheUserTakeThePartOfWorkerAndEvaluator) {
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"worker", {"a:1"}}, {"evaluator", {"a:2"}}});
  cluster.tasks = {kPs, kChief, kWorker, kEvaluator};
  cluster.chief = kChief;
  LaunchOptions options = kOptions;
  options.worker_command = {"/usr/bin/python3", "train.py"};
  options.evaluator_command = {"/bin/sh", "-c", "python3 eval.py"};
  options.tls_dir = "/tls/{role}-{index}";

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);

  EXPECT_EQ(launches[0].program, "/bin/ls/ps_server");
  EXPECT_EQ(launches[1].program, "/bin/ls/chief");
  EXPECT_EQ(launches[1].environment.count("LOCKSTEP_TLS_DIR"), 0u);
  EXPECT_EQ(launches[2].program, "/usr/bin/python3");
  EXPECT_THAT(launches[2].args, ElementsAre("train.py"));
  EXPECT_EQ(launches[2].environment.at("TF_CONFIG"),
            ToJson(cluster.spec, kWorker));
  EXPECT_EQ(launches[2].environment.at("LOCKSTEP_TLS_DIR"), "/tls/worker-0");
  EXPECT_EQ(launches[3].program, "/bin/sh");
  EXPECT_THAT(launches[3].args, ElementsAre("-c", "python3 eval.py"));
}

TEST(LaunchPlanTest, OnlyTheFirstStartOfTheChiefIsToldWhereToBegin) {
  LocalCluster cluster;
  cluster.spec = DenseCluster({{"worker", {"a:1"}}});
  cluster.tasks = {kChief, kWorker};
  cluster.chief = kChief;
  LaunchOptions options = kOptions;
  options.beginning = {"--from", "30"};

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);

  EXPECT_THAT(launches[0].begin_args, ElementsAre("--from", "30"));
  EXPECT_THAT(launches[0].args, Not(Contains("--from")));
  EXPECT_THAT(launches[1].begin_args, ElementsAre());
}

TEST(LaunchPlanTest, AWorkerGetsTheJobOnlyAsTheChief) {
  EXPECT_THAT(PlanOne(kWorker, kChief).args,
              ElementsAre("--log_level", "debug", "--compute_threads", "3"));
  EXPECT_THAT(
      PlanOne(kWorker, kWorker).args,
      ElementsAre("--log_level", "debug", "--compute_threads", "3", "--job",
                  "job.textproto", "--set", "seed=2", "--set", "batch_size=5"));
}

TEST(LaunchPlanTest, AnEvaluatorIsAWorkerThatEvaluates) {
  const TaskLaunch launch = PlanOne(kEvaluator, kChief);

  EXPECT_EQ(launch.program, "/bin/ls/worker");
  EXPECT_EQ(launch.log_path, "/logs/evaluator-0.log");
  EXPECT_THAT(launch.args, ElementsAre("--log_level", "debug", "--evaluate",
                                       "--compute_threads", "3"));
}

TEST(LaunchPlanTest, EachTaskHasItsOwnTfConfig) {
  const absl::StatusOr<TfConfig> config = ParseTfConfig(
      PlanOne(kWorker, kChief).environment.at("TF_CONFIG"), "test");

  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task_type, "worker");
  EXPECT_EQ(config->task_index, 0);
  EXPECT_EQ(config->cluster.NumTasks("worker"), 1);
}

TEST(LaunchPlanTest, GpusAreGivenInTurn) {
  LocalCluster cluster;
  cluster.num_workers = 3;
  cluster.tasks = {
      kChief, {TaskType::kWorker, 1}, {TaskType::kWorker, 2}, kEvaluator};
  LaunchOptions options = kOptions;
  options.gpus = {"4", "6"};

  const std::vector<TaskLaunch> launches = PlanLaunches(cluster, options);

  EXPECT_FALSE(launches[0].environment.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(launches[1].environment.at("CUDA_VISIBLE_DEVICES"), "6");
  EXPECT_EQ(launches[2].environment.at("CUDA_VISIBLE_DEVICES"), "4");
  EXPECT_EQ(launches[3].environment.at("CUDA_VISIBLE_DEVICES"), "6");
  EXPECT_THAT(launches[1].args, IsSupersetOf({"--device", "cuda"}));
}

TEST(LaunchPlanTest, AChiefThatComputesHasTheFirstGpu) {
  LocalCluster cluster;
  cluster.num_workers = 3;
  cluster.tasks = {kChief, kWorker, {TaskType::kWorker, 1}, kEvaluator};
  cluster.chief = kChief;
  cluster.hosts_mirrors = true;
  LaunchOptions options = kOptions;
  options.gpus = {"4", "6", "7"};

  std::vector<std::string> gpus;
  for (const TaskLaunch& launch : PlanLaunches(cluster, options)) {
    gpus.push_back(launch.environment.at("CUDA_VISIBLE_DEVICES"));
  }

  EXPECT_THAT(gpus, ElementsAre("4", "6", "7", "4"));
}

TEST(LaunchPlanTest, WorkersFindTheirDeviceThemselvesUnlessGpusAreGiven) {
  const TaskLaunch launch = PlanOne(kWorker, kChief);

  EXPECT_FALSE(launch.environment.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(launch.args, Not(Contains("--device")));
}

TEST(LaunchPlanTest, GpusAreChosenAmongTheVisibleOnes) {
  EXPECT_THAT(ChooseGpus(2, ""), IsOkAndHolds(ElementsAre("0", "1")));
  EXPECT_THAT(ChooseGpus(2, "5,3,1"), IsOkAndHolds(ElementsAre("5", "3")));
  EXPECT_THAT(ChooseGpus(4, "5,3,1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("CUDA_VISIBLE_DEVICES=5,3,1 has 3")));
}

}  // namespace
}  // namespace lockstep::cli
