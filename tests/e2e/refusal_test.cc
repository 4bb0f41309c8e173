// Impossible set-ups are refused at once, with an exit code that asks for no
// restart, and a message with the fix.

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/checkpoint/step_directory.h"
#include "common/process/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// Ends by itself, with a code that asks for no restart.
const auto kRefused = AllOf(Field(&cli::TaskExit::signal, 0),
                            Field(&cli::TaskExit::code, AllOf(Ge(1), Le(127))));
// Ends by itself, with a code that asks for a restart.
const auto kLater = AllOf(Field(&cli::TaskExit::signal, 0),
                          Field(&cli::TaskExit::code, kExitLost));

class RefusalTest : public ::testing::Test {
 protected:
  // Runs one program and expects it to refuse, with all of `words`.
  void ExpectRefusal(const std::string& program,
                     const std::vector<std::string>& args,
                     const std::string& tf_config,
                     const std::vector<std::string>& words,
                     ::testing::Matcher<cli::TaskExit> ends = kRefused) {
    ChildProcess::Options options;
    options.program = ProgramPath(program);
    options.args = args;
    options.environment["TF_CONFIG"] = tf_config;
    options.log_path = directory_.Join("log");
    auto child = ChildProcess::Start(options);
    ASSERT_THAT(child, IsOk());

    EXPECT_THAT((*child)->Wait(kPatience), IsOkAndHolds(ends));

    for (const std::string& word : words) {
      EXPECT_THAT((*child)->ReadLog(), HasSubstr(word));
    }
  }

  // Expects tasks of a job to end by themselves with a refusal that contains
  // `word`.
  void ExpectRefused(TrainingJob& job,
                     const std::vector<std::pair<std::string, int>>& tasks,
                     const std::string& word) {
    for (const auto& [name, index] : tasks) {
      EXPECT_THAT(job.cluster().Wait(name, index, kPatience),
                  IsOkAndHolds(kRefused))
          << name << " " << index;
      EXPECT_THAT(job.cluster().ReadLog(name, index),
                  IsOkAndHolds(HasSubstr(word)));
    }
  }

  // Starts all tasks, the workers when the servers have registered: a chief
  // whose workers all refuse the job ends, and waits for no server that comes
  // later, as on a busy machine.
  static void StartServersFirst(TrainingJob& job) {
    for (const auto& [name, index] : job.Tasks()) {
      if (name == "worker") continue;
      ASSERT_THAT(job.cluster().Start(name, index), IsOk());
    }
    for (const auto& [name, index] : job.Tasks()) {
      if (name != "ps") continue;
      ASSERT_THAT(
          job.cluster().WaitForLog(
              "chief", 0, absl::StrCat("ps ", index, " registered"), kPatience),
          IsOk());
    }
    ASSERT_THAT(job.StartAll(), IsOk());
  }

  // Returns a task's TF_CONFIG with an address as on another machine, because
  // on this one its own address is taken.
  static std::string Elsewhere(TrainingJob& job, const std::string& task,
                               int index) {
    const std::string address = job.cluster().Address(task, index).value();
    return absl::StrReplaceAll(
        job.cluster().TfConfig(task, index).value(),
        {{address, absl::StrReplaceAll(address, {{"0.0.1", "0.0.2"}})}});
  }

  // Starts it as on another machine, with flags after those of the job. Null if
  // it cannot be started.
  std::unique_ptr<ChildProcess> StartSecondChief(
      TrainingJob& job, std::vector<std::string> more_args) {
    ChildProcess::Options options;
    options.program = ProgramPath("chief");
    options.args = std::move(more_args);
    options.args.insert(options.args.begin(), {"--job", job.job_file()});
    options.environment["TF_CONFIG"] = Elsewhere(job, "chief", 0);
    options.log_path = directory_.Join("second");
    auto chief = ChildProcess::Start(options);
    EXPECT_THAT(chief, IsOk());
    return chief.ok() ? *std::move(chief) : nullptr;
  }

  // Gives worker 1 a TF_CONFIG that differs from the others'.
  void Misinform(
      TrainingJob& job,
      const std::vector<std::pair<std::string, std::string>>& changes) {
    const std::string agreed = job.cluster().TfConfig("worker", 1).value();
    const std::string other = absl::StrReplaceAll(agreed, changes);
    ASSERT_NE(other, agreed);
    const std::string path = directory_.Join("tf_config");
    std::ofstream(path) << other;
    job.cluster().AddArgument("worker", 1, "--tf_config=" + path);
  }

  std::string TfConfig(const std::string& job) {
    return *job_->cluster().TfConfig(job, 0);
  }
  std::vector<std::string> JobArgs(std::vector<std::string> more) {
    more.insert(more.begin(), {"--job", job_->job_file()});
    return more;
  }

  const TempDir directory_;
  const std::unique_ptr<TrainingJob> job_ = TrainingJob::Make({});
};

TEST_F(RefusalTest, ProgramForAnotherTask) {
  ExpectRefusal("chief", JobArgs({}), TfConfig("ps"), {"ps 0", "chief"});
  ExpectRefusal("ps_server", {}, TfConfig("worker"), {"worker 0", "ps_server"});
  ExpectRefusal("worker", {}, TfConfig("chief"), {"chief 0", "worker"});
  ExpectRefusal("worker", {"--evaluate"}, TfConfig("worker"),
                {"worker 0", "worker --evaluate"});
}

TEST_F(RefusalTest, TfConfigThatCannotBe) {
  ExpectRefusal("ps_server", {}, "{\"cluster\": ", {"TF_CONFIG", "JSON"});
  ExpectRefusal("ps_server", {}, "", {"TF_CONFIG"});
  ExpectRefusal("ps_server", {},
                R"({"cluster": {"ps": ["a:1"], "worker": ["b:2"]},
                    "task": {"type": "ps", "index": 7}})",
                {"no task ps 7", "cluster.ps"});
  ExpectRefusal("worker", {"--tf_config", "/no/such/file"}, "",
                {"/no/such/file"});
}

TEST_F(RefusalTest, JobThatCannotBe) {
  ExpectRefusal("chief", {}, TfConfig("chief"), {"--job"});
  ExpectRefusal("chief", {"--job", "/no/such/job"}, TfConfig("chief"),
                {"/no/such/job"});
  ExpectRefusal("chief", JobArgs({"--set", "train_step=5"}), TfConfig("chief"),
                {"train_step", "train_steps"});
  ExpectRefusal("chief", JobArgs({"--set", "train_steps=-5"}),
                TfConfig("chief"), {"train_steps is -5", "1 or more"});
  ExpectRefusal("chief", JobArgs({"--set", "total_num_replicas=7"}),
                TfConfig("chief"), {"total_num_replicas is 7", "2 workers"});
  ExpectRefusal("chief",
                JobArgs({"--set", "mode=COMPATIBLE", "--set",
                         "replicas_to_aggregate=AUTO"}),
                TfConfig("chief"),
                {"replicas_to_aggregate is AUTO", "mode to STRICT"});
}

TEST_F(RefusalTest, FlagThatIsNone) {
  ExpectRefusal("worker", {"--jobname", "x"}, TfConfig("worker"),
                {"--jobname", "--job_name"});
  ExpectRefusal("worker", {"--device", "tpu"}, TfConfig("worker"),
                {"tpu", "cpu"});
}

// Without certificates no other host may reach a process.
TEST_F(RefusalTest, AddressBeyondLoopbackWithoutCertificates) {
  for (const char* host : {"0.0.0.0", "[::]", "192.0.2.1", "no-such-host"}) {
    const std::string config = absl::StrCat(
        R"({"cluster": {"chief": [")", host, R"(:7001"], "ps": [")", host,
        R"(:7002"], "worker": [")", host, R"(:7003", "127.0.0.1:7004"]})");
    const auto as = [&](const std::string& task) {
      return absl::StrCat(config, R"(, "task": {"type": ")", task,
                          R"(", "index": 0}})");
    };
    ExpectRefusal("ps_server", {}, as("ps"), {"--insecure", "--tls_dir"});
    ExpectRefusal("worker", {}, as("worker"), {"--insecure", "--tls_dir"});
    ExpectRefusal("chief", JobArgs({}), as("chief"),
                  {"--insecure", "--tls_dir"});
  }
  ExpectRefusal("ps_server", {"--status_address=0.0.0.0:0"}, TfConfig("ps"),
                {"--status_address", "--insecure"});
  ExpectRefusal("ps_server", {"--tls_dir=/no/such/{role}"}, TfConfig("ps"),
                {"/no/such/ps/tls.crt"});
  ExpectRefusal("ps_server", {"--identity_map=roles"}, TfConfig("ps"),
                {"--identity_map is roles", "--tls_dir"});
}

// The previous process of the port may still be ending.
TEST_F(RefusalTest, PortThatStaysTakenAsksToBeStartedAgain) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string taken = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));

  ExpectRefusal("ps_server", {},
                absl::StrCat(R"({"cluster": {"ps": [")", taken,
                             R"("], "chief": ["127.0.0.1:1"],
                                 "worker": ["127.0.0.1:2"]},
                    "task": {"type": "ps", "index": 0}})"),
                {taken, "taken", "trying again for 5s"}, kLater);

  close(fd);
}

// As if an operator had started a task by hand while it runs already.
TEST_F(RefusalTest, SecondProcessOfATaskOnItsHostIsRefusedAndTheJobGoesOn) {
  auto job = TrainingJob::Make({.set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  for (const auto& [program, task] :
       {std::pair("chief", "chief"), std::pair("ps_server", "ps"),
        std::pair("worker", "worker")}) {
    std::vector<std::string> args;
    if (program == std::string("chief")) args = {"--job", job->job_file()};
    ExpectRefusal(program, args, job->cluster().TfConfig(task, 0).value(),
                  {job->cluster().Address(task, 0).value(), "the port is taken",
                   "give another address in TF_CONFIG"},
                  kLater);
  }

  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 5), IsOk());
}

// No task has its address, so none registers with it, and it has no members.
TEST_F(RefusalTest, SecondChiefNamesTheTasksThatItMissesAndTheJobGoesOn) {
  auto job = TrainingJob::Make(
      {.set = {"train_steps=1000000", "checkpoint.every_steps=5"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  auto chief = StartSecondChief(
      *job, {"--set", "checkpoint.directory=" + directory_.Join("others")});

  ASSERT_NE(chief, nullptr);
  EXPECT_THAT(chief->WaitForLog("for ps 0, ps 1", kPatience), IsOk());
  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 20), IsOk());
  ASSERT_THAT(chief->Signal(SIGTERM), IsOk());
  EXPECT_THAT(chief->Wait(kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 143)));
  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 20), IsOk());
}

// It would be refused again until an operator acts.
TEST_F(RefusalTest, ChiefOfAnotherJobOnTheSameCheckpointsIsNotTriedAgain) {
  auto job = TrainingJob::Make(
      {.set = {"train_steps=1000000", "checkpoint.every_steps=5"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  auto chief = StartSecondChief(*job, {"--set", "seed=77"});

  ASSERT_NE(chief, nullptr);
  EXPECT_THAT(chief->Wait(kPatience),
              IsOkAndHolds(Field(&cli::TaskExit::code, 2)));
  EXPECT_THAT(chief->ReadLog(),
              AllOf(HasSubstr(job->checkpoints()),
                    HasSubstr("give each job a directory of its own")));
  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 20), IsOk());
}

// Only a server itself knows its index.
TEST_F(RefusalTest, WorkerWithServersInAnotherOrderEndsAndTheJobGoesOn) {
  auto job = TrainingJob::Make(
      {.servers = 3,
       .set = {"train_steps=1000000", "replicas_to_aggregate=1"}});
  const std::string one = job->cluster().Address("ps", 1).value();
  const std::string two = job->cluster().Address("ps", 2).value();
  Misinform(*job, {{one, two}, {two, one}});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectRefused(*job, {{"worker", 1}}, "give all tasks the same cluster");

  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 5), IsOk());
}

TEST_F(RefusalTest, WorkerThatTakesAnotherServerForPs0EndsAndTheJobGoesOn) {
  auto job = TrainingJob::Make(
      {.set = {"train_steps=1000000", "replicas_to_aggregate=1"}});
  const std::string zero = job->cluster().Address("ps", 0).value();
  const std::string one = job->cluster().Address("ps", 1).value();
  Misinform(*job, {{zero, one}, {one, zero}});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectRefused(*job, {{"worker", 1}}, "give all tasks the same cluster");

  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 5), IsOk());
}

TEST_F(RefusalTest, WorkerThatKnowsFewerServersEndsAndTheJobGoesOn) {
  auto job = TrainingJob::Make(
      {.set = {"train_steps=1000000", "replicas_to_aggregate=1"}});
  const std::string last = job->cluster().Address("ps", 1).value();
  Misinform(*job, {{absl::StrCat(",\"", last, "\""), ""}});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectRefused(*job, {{"worker", 1}}, "give all tasks the same cluster");

  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 5), IsOk());
}

TEST_F(RefusalTest, ChiefOfAnotherJob) {
  auto job = TrainingJob::Make(
      {.evaluator = true, .more_args = {"--job_name", "other"}});
  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectRefused(*job, {{"ps", 0}, {"worker", 1}, {"evaluator", 0}},
                "wants job \"other\"; this chief runs \"e2e\"");
}

TEST_F(RefusalTest, MissingDataEndsTheWholeJob) {
  auto job = TrainingJob::Make({.set = {"data.train_images=/no/such/images"}});
  ASSERT_NO_FATAL_FAILURE(StartServersFirst(*job));

  ExpectRefused(*job, job->Tasks(), "/no/such/images");
}

TEST_F(RefusalTest, ModelThatCannotBeEndsTheWholeJob) {
  auto job = TrainingJob::Make({.set = {"model.kind=transformer"}});
  ASSERT_NO_FATAL_FAILURE(StartServersFirst(*job));

  ExpectRefused(*job, job->Tasks(), "transformer");
}

TEST_F(RefusalTest, DamagedCheckpointEndsTheWholeJobAndStaysAsItIs) {
  auto job = TrainingJob::Make({.set = {"train_steps=20"}});
  ASSERT_THAT(job->Run(), IsOk());
  const std::string path = absl::StrCat(job->checkpoints(), "/",
                                        StepDirectoryName(20), "/", kModelFile);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  }
  const std::string damaged =
      ReadCheckpoint(job->checkpoints(), 20, kModelFile);

  ASSERT_THAT(job->StartAll(), IsOk());

  ExpectRefused(*job, job->Tasks(), kModelFile);
  EXPECT_EQ(ReadCheckpoint(job->checkpoints(), 20, kModelFile), damaged);
}

TEST_F(RefusalTest, CheckpointOfAnotherModelEndsTheWholeJob) {
  auto job = TrainingJob::Make({.set = {"train_steps=20"}});
  ASSERT_THAT(job->Run(), IsOk());
  auto wider =
      TrainingJob::Make({.set = {"train_steps=40", "model.hidden_units=48"},
                         .checkpoints = job->checkpoints()});
  ASSERT_THAT(wider->StartAll(), IsOk());

  ExpectRefused(*wider, wider->Tasks(), "hidden1/weights");
}

TEST_F(RefusalTest, OlderOfTwoProcessesOfOneTaskEndsAndTheJobGoesOn) {
  auto job = TrainingJob::Make({.set = {"train_steps=1000000"}});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  ChildProcess::Options twin;
  twin.program = ProgramPath("worker");
  twin.environment["TF_CONFIG"] = Elsewhere(*job, "worker", 1);
  twin.log_path = directory_.Join("twin");
  auto newer = ChildProcess::Start(twin);
  ASSERT_THAT(newer, IsOk());

  EXPECT_THAT(job->cluster().Wait("worker", 1, kPatience),
              IsOkAndHolds(kRefused));

  EXPECT_THAT(job->cluster().ReadLog("worker", 1),
              IsOkAndHolds(HasSubstr("give each process a task of its own")));
  EXPECT_THAT(job->WaitForStep(job->GetStatus()->step + 5), IsOk());
}

}  // namespace
}  // namespace lockstep::testing
