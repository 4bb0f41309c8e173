#include "deploy/cli/run/run_setup.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/substitute.h"
#include "deploy/cli/run/port_reservation.h"
#include "deploy/cli/tasks/log_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class RunSetupTest : public ::testing::Test {
 protected:
  RunSetupTest() {
    Write("cluster.json",
          R"({"cluster": {"chief": ["localhost:0"], "ps": ["localhost:0"],
              "worker": ["localhost:0", "localhost:0"]}})");
    Write("a", "");
    Write("job.textproto",
          "name: 'tiny' train_steps: 5 batch_size: 2\n"
          "data { train_images: '" +
              directory_.Join("a") + "' train_labels: '" +
              directory_.Join("a") + "' }\n");
    for (const char* program : {"chief", "ps_server", "worker"}) {
      Write(program, "#!/bin/sh\n");
      chmod(directory_.Join(program).c_str(), 0755);
    }
    request_ = {.cluster_file = directory_.Join("cluster.json"),
                .job_file = directory_.Join("job.textproto"),
                .log_dir = directory_.Join("logs"),
                .state_dir = directory_.Join("state"),
                .program_dir = directory_.path()};
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.Join(name)) << text;
  }

  TempDir directory_;
  RunRequest request_;
};

TEST_F(RunSetupTest, EverythingIsThereBeforeTheFirstProcess) {
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->job_name, "tiny");
  EXPECT_EQ(setup->needed_workers, 2);
  EXPECT_TRUE(setup->need_follows_settings);
  EXPECT_EQ(setup->launches.size(), 4u);
  EXPECT_EQ(setup->ports.size(), 5u);  // the page of the job has the fifth
  EXPECT_TRUE(fs::is_directory(directory_.Join("state/ps-0")));
}

TEST_F(RunSetupTest, ScheduleThatEndsBeforeTheTrainingIsAWarning) {
  request_.settings = {"learning_rate_schedule.kind=COSINE_DECAY",
                       "learning_rate_schedule.decay_steps=3"};
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_THAT(setup->cluster.warnings,
              ::testing::Contains(HasSubstr("the last 2 steps")));
}

TEST_F(RunSetupTest, StateThatNoLaterRunFindsIsAWarning) {
  const auto warnings = [&] {
    const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
    EXPECT_THAT(setup, IsOk());
    return setup.ok() ? setup->cluster.warnings : std::vector<std::string>{};
  };
  const auto says = ::testing::Contains(HasSubstr("a port of 0 is another"));
  EXPECT_THAT(warnings(), says);
  request_.state_dir = "";
  EXPECT_THAT(warnings(), ::testing::Not(says));

  request_.state_dir = directory_.Join("state");
  std::vector<PortReservation> ports;
  for (int i = 0; i < 3; ++i) ports.push_back(*PortReservation::Create());
  Write("cluster.json",
        absl::Substitute(R"({"cluster": {"chief": ["localhost:$0"],
            "ps": ["localhost:$1"], "worker": ["localhost:$2"]}})",
                         ports[0].port(), ports[1].port(), ports[2].port()));
  ports.clear();
  EXPECT_THAT(warnings(), ::testing::Not(says));
}

TEST_F(RunSetupTest, StatusFindsTheChiefThroughTheLogDirectory) {
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
  ASSERT_THAT(setup, IsOk());

  EXPECT_THAT(ReadTextFile(directory_.Join("logs/chief.address")),
              IsOkAndHolds(setup->cluster.chief_address + "\n"));
  const absl::StatusOr<std::string> json =
      ReadTextFile(directory_.Join("logs/cluster.json"));
  ASSERT_THAT(json, IsOk());
  EXPECT_THAT(ChiefAddressOf(*json, "cluster.json"),
              IsOkAndHolds(setup->cluster.chief_address));
  EXPECT_THAT(*json, ::testing::Not(HasSubstr("task")));
}

TEST_F(RunSetupTest, LogsOfARunThatGoesOnAreNotTaken) {
  const absl::StatusOr<RunSetup> running = SetUpRun(request_);
  ASSERT_THAT(running, IsOk());
  request_.state_dir = directory_.Join("other");

  EXPECT_THAT(SetUpRun(request_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(directory_.Join("logs"))));
  EXPECT_THAT(ReadTextFile(directory_.Join("logs/chief.address")),
              IsOkAndHolds(running->cluster.chief_address + "\n"));
}

TEST_F(RunSetupTest, ARunWhoseStateIsTakenMakesNoLogs) {
  const absl::StatusOr<RunSetup> running = SetUpRun(request_);
  ASSERT_THAT(running, IsOk());
  request_.log_dir = directory_.Join("more");

  EXPECT_THAT(SetUpRun(request_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(directory_.Join("state"))));
  EXPECT_FALSE(fs::exists(directory_.Join("more")));
}

TEST_F(RunSetupTest, TheResultOfAnEarlierRunGoes) {
  fs::create_directory(directory_.Join("logs"));
  Write("logs/result.json", "{}");

  EXPECT_THAT(SetUpRun(request_), IsOk());
  EXPECT_FALSE(fs::exists(directory_.Join("logs/result.json")));
}

TEST_F(RunSetupTest, APrivateStateDirectoryGoesWithTheRun) {
  request_.state_dir.clear();
  std::string path;
  {
    const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
    ASSERT_THAT(setup, IsOk());
    path = setup->state->path();
    EXPECT_TRUE(fs::is_directory(path + "/ps-0"));
  }

  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RunSetupTest, CheckpointDirectoryThatCannotBeIsRefusedAtOnce) {
  Write("file", "in the way");
  request_.settings = {"checkpoint.directory=" + directory_.Join("file/c")};

  EXPECT_THAT(SetUpRun(request_).status().message(),
              ::testing::AllOf(HasSubstr("checkpoint.directory"),
                               HasSubstr(directory_.Join("file/c"))));
}

// Logs may lie beside the job files of a person.
TEST_F(RunSetupTest, JobFilesInALogDirectoryOfEarlierRunsStay) {
  request_.log_dir = directory_.Join("logs");
  ASSERT_THAT(SetUpRun(request_), IsOk());
  Write("logs/job.textproto", "of a person");
  ASSERT_THAT(SetUpRun(request_), IsOk());
  EXPECT_EQ(*ReadTextFile(directory_.Join("logs/job.textproto")),
            "of a person");
}

// A chief that is started again must not begin another job.
TEST_F(RunSetupTest, TheChiefHasACopyOfTheJobFile) {
  const auto text = ReadTextFile(request_.job_file);
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
  ASSERT_THAT(setup, IsOk());
  Write("job.textproto", "name: 'another'\n");

  const std::string copy = setup->log_dir + "/chief.textproto";
  EXPECT_EQ(*ReadTextFile(copy), *text);
  for (const TaskLaunch& launch : setup->launches) {
    if (launch.task.type != TaskType::kChief) continue;
    EXPECT_THAT(launch.args, ::testing::Contains(copy));
    EXPECT_THAT(launch.args,
                ::testing::Not(::testing::Contains(request_.job_file)));
  }
}

TEST_F(RunSetupTest, ACommandNeedsNeitherClusterFileNorJobFile) {
  request_.cluster_file = "";
  request_.job_file = "";
  request_.counts = {.ps = 2, .workers = 4, .backups = 1};
  request_.settings = {"train_steps=10", "optimizer.kind=ADAMW"};
  request_.command = {"sh", "-c", "exit 0"};

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->launches.size(), 2u + 1 + 4);
  EXPECT_EQ(setup->needed_workers, 3);
  EXPECT_THAT(setup->settings, ::testing::Contains("model.kind=external"));
  EXPECT_THAT(setup->launches[2].args,
              ::testing::Contains(setup->log_dir + "/chief.textproto"));
  EXPECT_TRUE(fs::exists(directory_.Join("logs/chief.textproto")));
  EXPECT_THAT(setup->launches[3].program, ::testing::EndsWith("/sh"));
}

TEST_F(RunSetupTest, AStrategyOfOneWorkerNeedsNoClusterFile) {
  request_.cluster_file = "";
  request_.settings = {"strategy.kind=MIRRORED",
                       "strategy.replicas_per_worker=2"};

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->cluster.num_workers, 1);
  EXPECT_EQ(setup->launches.size(), 3u);  // ps, chief, worker
  request_.counts.workers = 2;
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("which has one worker")));
  request_.counts.workers = 0;
  request_.settings.push_back("replicas_to_aggregate=2");
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("--set replicas_to_aggregate=0")));
}

TEST_F(RunSetupTest, ACommandThatDoesNotFitIsRefusedBeforeAnythingIsMade) {
  const auto refused = [&](const char* why) {
    EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr(why)));
    EXPECT_FALSE(fs::exists(directory_.Join("logs")));
  };
  request_.command = {"no-such-program"};
  refused("no-such-program: there is no such program in PATH");
  request_.command = {"sh"};
  request_.settings = {"model.kind=softmax"};
  refused("model.kind is \"softmax\", which the built-in worker computes");
  Write("named.textproto",
        "model { kind: 'softmax' } train_steps: 5 batch_size: 2\n"
        "data { train_images: 'a' train_labels: 'a' }\n");
  request_.settings = {};
  request_.job_file = directory_.Join("named.textproto");
  refused("model.kind is \"softmax\"");
  request_.command = {"learning_rate=0.1"};
  refused(
      "learning_rate=0.1 is no program; if it is a setting of the job, "
      "write --set learning_rate=0.1");
  request_.command = {"sh"};
  request_.job_file = directory_.Join("job.textproto");
  request_.evaluator_command = "python3 eval.py";
  refused("--evaluator is given, but the cluster has no evaluator");
  request_.cluster_file = "";
  request_.counts.workers = 2;
  // Not with the name of the job file: the fault is not in it alone.
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, ::testing::StartsWith(
                                     "--evaluator is given, but the job has "
                                     "no checkpoint.directory")));
  request_.settings = {"checkpoint.directory=" + directory_.Join("kept")};
  request_.evaluator_command = "pyton3 eval.py";
  refused("--evaluator: pyton3: there is no such program in PATH");
  request_.evaluator_command = "";
  request_.settings = {"strategy.kind=MULTI_WORKER_MIRRORED"};
  request_.counts.ps_given = true;
  request_.counts.ps = 3;
  refused("--ps is 3, but under MULTI_WORKER_MIRRORED");
  request_.counts.ps = 1;
  refused("--ps is 1, but under MULTI_WORKER_MIRRORED");
  request_.settings = {};
  request_.counts = {};
  request_.cluster_file = directory_.Join("cluster.json");
  request_.command = {};
  request_.job_file = "";
  refused("there is no job; give --job FILE");
  request_.cluster_file = "";
  refused("there are no workers; give --workers N");
  request_.settings = {"train_steps=5"};
  request_.counts = {.workers = 3, .backups = 5};
  refused("--backups is 5, but must be below --workers, which is 3");
  request_.job_file = directory_.Join("absent.textproto");
  refused("absent.textproto");
}

TEST_F(RunSetupTest, AProgramThatHostsTheChiefIsKnown) {
  Write("cluster.json",
        R"({"cluster": {"worker": ["localhost:0", "localhost:0"]}})");
  request_.job_file = "";
  request_.settings = {"train_steps=10", "batch_size=2", "optimizer.kind=SGD",
                       "strategy.kind=MULTI_WORKER_MIRRORED"};
  request_.command = {"sh", "-c", "exit 0"};
  {
    const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
    ASSERT_THAT(setup, IsOk());
    EXPECT_TRUE(setup->programs);
    EXPECT_TRUE(setup->chief_in_program);
  }
  request_.cluster_file = "";
  request_.counts.workers = 2;
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
  ASSERT_THAT(setup, IsOk());
  EXPECT_FALSE(setup->chief_in_program);
  EXPECT_FALSE(setup->elastic_programs);
  EXPECT_TRUE(setup->ps_are_mirrors);
}

TEST_F(RunSetupTest, ProgramsOfAnElasticJobAreKnown) {
  request_.job_file = "";
  request_.settings = {"train_steps=10", "batch_size=2",
                       "elastic_workers=true"};
  request_.command = {"sh", "-c", "exit 0"};
  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);
  ASSERT_THAT(setup, IsOk());
  EXPECT_TRUE(setup->elastic_programs);
  EXPECT_FALSE(setup->ps_are_mirrors);
  EXPECT_FALSE(setup->programs);
}

TEST_F(RunSetupTest, SettingsChangeTheJob) {
  request_.settings = {"replicas_to_aggregate=1", "name=other"};

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_EQ(setup->job_name, "other");
  EXPECT_EQ(setup->needed_workers, 1);
}

TEST_F(RunSetupTest, CoresAreSharedOutUnlessTold) {
  request_.compute_threads = 7;

  const absl::StatusOr<RunSetup> setup = SetUpRun(request_);

  ASSERT_THAT(setup, IsOk());
  EXPECT_THAT(setup->launches.back().args, ::testing::Contains("7"));
}

TEST_F(RunSetupTest, BadInputIsRefusedBeforeAnythingIsMade) {
  request_.settings = {"train_stepz=1"};
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("train_stepz")));

  request_.settings = {"train_steps=-1"};
  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("train_steps")));

  request_.settings = {};
  Write("job.textproto", "nonsense");
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("job.textproto")));

  Write("cluster.json", "{");
  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("cluster.json")));

  EXPECT_FALSE(fs::exists(directory_.Join("logs")));
  EXPECT_FALSE(fs::exists(directory_.Join("state")));
}

TEST_F(RunSetupTest, AJobThatDoesNotFitIsRefusedBeforeAnythingIsMade) {
  for (const auto& [setting, words] :
       std::vector<std::pair<std::string, std::string>>{
           {"total_num_replicas=3", "the cluster has 2 workers"},
           {"model.kind=foo", "skip_gram"},
           {"data.train_images=/nowhere/a",
            "data.train_images is /nowhere/a: "
            "No such file"},
           {"checkpoint.directory=" + directory_.Join("a/b"),
            "checkpoint.directory: "}}) {
    request_.settings = {setting};
    EXPECT_THAT(SetUpRun(request_),
                StatusIs(kInvalid,
                         AllOf(HasSubstr("job.textproto"), HasSubstr(words))));
  }
  EXPECT_FALSE(fs::exists(directory_.Join("logs")));
  EXPECT_FALSE(fs::exists(directory_.Join("state")));
}

TEST_F(RunSetupTest, ABatchLargerThanTheDataIsRefusedBeforeAnythingIsMade) {
  Write("a", std::string("\0\0\x08\x01\0\0\0\x03\1\2\3", 11));

  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, AllOf(HasSubstr("job.textproto: batch_size"),
                                       HasSubstr("over 2 workers"))));
  EXPECT_FALSE(fs::exists(directory_.Join("logs")));
}

TEST_F(RunSetupTest, ATakenPortIsNamedWithItsPlace) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  Write("cluster.json", R"({"cluster": {"ps": ["127.0.0.1:)" + port +
                            R"("], "worker": ["localhost:0"]}})");

  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("cluster.ps[0] is 127.0.0.1:" +
                                           port + ": the port is taken")));
  close(fd);
}

TEST_F(RunSetupTest, ThePageHasAPortOfItsOwn) {
  const std::string address =
      "127.0.0.1:" + std::to_string(PortReservation::Create()->port());
  Write("cluster.json", R"({"cluster": {"ps": [")" + address +
                            R"("], "worker": ["localhost:0"]}})");
  request_.status_address = address;

  EXPECT_THAT(SetUpRun(request_),
              StatusIs(kInvalid, HasSubstr("--status_address " + address +
                                           ": a task of this run has the "
                                           "port; give another port")));
  EXPECT_FALSE(fs::exists(directory_.Join("logs")));
}

TEST_F(RunSetupTest, GpusThatAreNotThereAreRefused) {
  request_.gpus = 1000;

  EXPECT_THAT(SetUpRun(request_), StatusIs(kInvalid, HasSubstr("--gpus")));
}

TEST_F(RunSetupTest, MissingFilesAreNamed) {
  request_.job_file = directory_.Join("missing");
  EXPECT_THAT(
      SetUpRun(request_),
      StatusIs(kInvalid, AllOf(HasSubstr("--job "), HasSubstr("missing"))));

  request_.cluster_file = directory_.Join("absent");
  EXPECT_THAT(
      SetUpRun(request_),
      StatusIs(kInvalid, AllOf(HasSubstr("--cluster "), HasSubstr("absent"))));
}

TEST_F(RunSetupTest, AMissingProgramIsNamedWithItsTask) {
  fs::remove(directory_.Join("worker"));

  EXPECT_THAT(
      SetUpRun(request_),
      StatusIs(kInvalid, AllOf(HasSubstr("/worker"), HasSubstr("worker 0"))));
}

}  // namespace
}  // namespace lockstep::cli
