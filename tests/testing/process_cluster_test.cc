#include "tests/testing/process_cluster.h"

#include <signal.h>

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Milliseconds(50);

class ProcessClusterTest : public ::testing::Test {
 protected:
  // A cluster whose tasks are shells that all run `script`.
  std::unique_ptr<ProcessCluster> Cluster(const std::string& script) {
    const ProcessCluster::Program shell = {"/bin/sh", {"-c", script}};
    ProcessCluster::Options options;
    options.jobs = {{"chief", {1, shell}}, {"ps", {2, shell}}};
    options.environment = {{"GREETING", "hello"}};
    options.log_directory = dir_.path();
    absl::StatusOr<std::unique_ptr<ProcessCluster>> cluster =
        ProcessCluster::Create(std::move(options));
    EXPECT_OK(cluster);
    return *std::move(cluster);
  }

  TempDir dir_;
};

TEST_F(ProcessClusterTest, EveryTaskReceivesItsOwnTfConfig) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("echo \"$TF_CONFIG\"");
  ASSERT_OK(cluster->StartAll());
  ASSERT_OK(cluster->WaitAllSucceed(kLong));

  const nlohmann::json config =
      nlohmann::json::parse(*cluster->ReadLog("ps", 1));

  EXPECT_EQ(config["task"]["type"], "ps");
  EXPECT_EQ(config["task"]["index"], 1);
  EXPECT_THAT(config["cluster"]["ps"], SizeIs(2));
  EXPECT_EQ(config["cluster"]["ps"][1], *cluster->Address("ps", 1));
  EXPECT_EQ(config["cluster"]["chief"][0], *cluster->Address("chief", 0));
}

TEST_F(ProcessClusterTest, AddressesDiffer) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("true");

  const std::set<std::string> addresses = {*cluster->Address("chief", 0),
                                           *cluster->Address("ps", 0),
                                           *cluster->Address("ps", 1)};

  EXPECT_THAT(addresses, SizeIs(3));
}

TEST_F(ProcessClusterTest, EnvironmentReachesEveryTask) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("echo $GREETING");
  ASSERT_OK(cluster->StartAll());
  ASSERT_OK(cluster->WaitAllSucceed(kLong));

  EXPECT_THAT(cluster->ReadLog("chief", 0), IsOkAndHolds("hello\n"));
  EXPECT_THAT(cluster->ReadLog("ps", 0), IsOkAndHolds("hello\n"));
}

TEST_F(ProcessClusterTest, KilledTaskStartsAgainAtTheSameAddress) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("echo ready; sleep 1000");
  ASSERT_OK(cluster->Start("ps", 0));
  ASSERT_OK(cluster->WaitForLog("ps", 0, "ready", kLong));
  const std::string address = *cluster->Address("ps", 0);
  const pid_t first = (*cluster->Process("ps", 0))->pid();

  ASSERT_OK(cluster->Kill("ps", 0));
  ASSERT_OK(cluster->Start("ps", 0));

  EXPECT_NE((*cluster->Process("ps", 0))->pid(), first);
  EXPECT_THAT(cluster->Address("ps", 0), IsOkAndHolds(address));
  EXPECT_OK(cluster->WaitForLog("ps", 0, "ready", kLong));
}

TEST_F(ProcessClusterTest, SignalEndsATask) {
  std::unique_ptr<ProcessCluster> cluster =
      Cluster("echo ready; exec sleep 99");
  ASSERT_OK(cluster->Start("chief", 0));
  ASSERT_OK(cluster->WaitForLog("chief", 0, "ready", kLong));

  ASSERT_OK(cluster->Signal("chief", 0, SIGTERM));

  EXPECT_THAT(cluster->Wait("chief", 0, kLong),
              IsOkAndHolds(cli::TaskExit{.signal = SIGTERM}));
}

TEST_F(ProcessClusterTest, FailedTaskIsNamedWithItsLastWords) {
  std::unique_ptr<ProcessCluster> cluster =
      Cluster("case $TF_CONFIG in *'\"chief\"}'*) echo ouch; exit 4;; esac");
  ASSERT_OK(cluster->StartAll());

  EXPECT_THAT(cluster->WaitAllSucceed(kLong),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("task chief 0"), HasSubstr("code 4"),
                             HasSubstr("ouch"))));
}

TEST_F(ProcessClusterTest, FailedTaskIsNamedWhileOthersRun) {
  std::unique_ptr<ProcessCluster> cluster = Cluster(
      "case \"$TF_CONFIG\" in *'\"index\":1'*) exit 3;; esac; sleep 600");
  ASSERT_OK(cluster->StartAll());

  EXPECT_THAT(cluster->WaitAllSucceed(kLong),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("ps 1")));
}

TEST_F(ProcessClusterTest, TaskThatOverstaysIsNamed) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("sleep 1000");
  ASSERT_OK(cluster->Start("ps", 1));

  EXPECT_THAT(
      cluster->WaitAllSucceed(kShort),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("task ps 1")));
}

TEST_F(ProcessClusterTest, UnknownTaskIsRefused) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("true");

  EXPECT_THAT(cluster->Start("ps", 2), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster->Kill("worker", 0),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster->Address("ps", -1),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster->TfConfig("evaluator", 0),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(cluster->ReadLog("worker", 0),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ProcessClusterTest, TaskThatDoesNotRunTakesNoSignal) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("true");
  ASSERT_OK(cluster->Start("ps", 0));
  ASSERT_OK(cluster->Wait("ps", 0, kLong));

  EXPECT_THAT(cluster->Signal("ps", 0, SIGTERM),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(cluster->Kill("ps", 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(cluster->Wait("chief", 0, kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ProcessClusterTest, RunningTaskIsNotStartedTwice) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("sleep 1000");
  ASSERT_OK(cluster->Start("ps", 0));

  EXPECT_THAT(cluster->Start("ps", 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ProgramPathTest, NamesAProgramOfThisBuild) {
  EXPECT_THAT(ProgramPath("ps_server"), EndsWith("/bin/ps_server"));
}

TEST(ProcessClusterOptionsTest, ClusterWithoutTasksIsRefused) {
  ProcessCluster::Options options;
  EXPECT_THAT(ProcessCluster::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument));

  options.jobs["ps"].tasks = 0;
  EXPECT_THAT(ProcessCluster::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ps")));
}

TEST_F(ProcessClusterTest, TaskCanHaveAnEnvironmentAndArgumentsOfItsOwn) {
  std::unique_ptr<ProcessCluster> cluster = Cluster("echo $GREETING $0");
  cluster->SetEnvironment("ps", 1, "GREETING", "good bye");
  cluster->AddArgument("ps", 1, "argument");
  ASSERT_OK(cluster->StartAll());
  ASSERT_OK(cluster->WaitAllSucceed(kLong));

  EXPECT_EQ(*cluster->ReadLog("ps", 1), "good bye argument\n");
  EXPECT_THAT(*cluster->ReadLog("ps", 0),
              AllOf(HasSubstr("hello"), Not(HasSubstr("argument"))));
  cluster->UnsetEnvironment("ps", 1, "GREETING");
  ASSERT_OK(cluster->Start("ps", 1));
  ASSERT_OK(cluster->WaitAllSucceed(kLong));
  EXPECT_EQ(*cluster->ReadLog("ps", 1), "hello argument\n");
}

}  // namespace
}  // namespace lockstep::testing
