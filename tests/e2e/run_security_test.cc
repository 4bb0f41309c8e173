// `lockstep run` and the other users of its machine.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/step_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr char kEndless[] = "train_steps=10000000";

// Runs of a TrainingJob's job; its own tasks are never started.
class RunSecurityTest : public ::testing::Test {
 protected:
  RunSecurityTest() {
    std::ofstream(directory_.Join("cluster.json"))
        << R"({"cluster": {"chief": ["127.0.0.1:0"], "ps": ["127.0.0.1:0"],
               "worker": ["127.0.0.1:0", "127.0.0.1:0"]}})";
    chmod(directory_.path().c_str(), 0755);
    fs::create_directory(directory_.Join("logs"));
    chmod(logs().c_str(), 0755);
  }

  std::unique_ptr<ChildProcess> Start(const std::string& setting,
                                      std::vector<std::string> more) {
    std::vector<std::string> args = {
        "run",   "--cluster",      directory_.Join("cluster.json"),
        "--job", job_->job_file(), "--log_dir",
        logs(),  "--set",          setting};
    args.insert(args.end(), more.begin(), more.end());
    auto run = ChildProcess::Start({.program = ProgramPath("lockstep"),
                                    .args = args,
                                    .log_path = directory_.Join("out")});
    EXPECT_THAT(run, IsOk());
    return run.ok() ? *std::move(run) : nullptr;
  }

  std::unique_ptr<ChildProcess> StartAndWait(std::vector<std::string> more) {
    auto run = Start(kEndless, std::move(more));
    EXPECT_THAT(run->WaitForLog("training ", kPatience), IsOk());
    return run;
  }

  // The exit code and output of a command of this user.
  int Own(const std::vector<std::string>& args) {
    return Code({.program = ProgramPath("lockstep"),
                 .args = args,
                 .log_path = directory_.Join("own")});
  }

  // Likewise for another user, with a copy of the program.
  int AsOther(const std::vector<std::string>& args) {
    fs::create_directory(elsewhere());
    const std::string program = elsewhere() + "/lockstep";
    if (!fs::exists(program)) fs::copy(ProgramPath("lockstep"), program);
    EXPECT_EQ(chown(elsewhere().c_str(), 65534, 65534), 0);
    fs::remove(directory_.Join("theirs"));
    std::vector<std::string> all = {"--reuid=65534", "--regid=65534",
                                    "--clear-groups", program};
    all.insert(all.end(), args.begin(), args.end());
    return Code({.program = "/usr/bin/setpriv",
                 .args = all,
                 .log_path = directory_.Join("theirs")});
  }

  std::string Output(const std::string& name) const {
    std::ifstream file(directory_.Join(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string ChiefAddress() const {
    return std::string(
        absl::StripAsciiWhitespace(Output("logs/chief.address")));
  }

  std::string logs() const { return directory_.Join("logs"); }
  std::string elsewhere() const { return directory_.Join("elsewhere"); }

  static int Code(const ChildProcess::Options& options) {
    const auto exit = RunProgram(options, kPatience);
    EXPECT_THAT(exit, IsOk());
    return exit.ok() ? exit->code : -1;
  }

  // Each file below `path` whose name is that of a key.
  static std::vector<std::string> KeysIn(const std::string& path) {
    std::vector<std::string> keys;
    for (const auto& entry : fs::recursive_directory_iterator(
             path, fs::directory_options::follow_directory_symlink)) {
      if (entry.path().extension() == ".key") keys.push_back(entry.path());
    }
    return keys;
  }

  TempDir directory_;
  std::unique_ptr<TrainingJob> job_ = TrainingJob::Make({.set = {}});
};

TEST_F(RunSecurityTest, AnotherUserCanNeitherSeeNorStopARun) {
  if (geteuid() != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root can become another user";
  }
  const auto run = StartAndWait({});
  const std::string chief = ChiefAddress();

  EXPECT_EQ(AsOther({"status", "--chief", chief}), 1);
  EXPECT_THAT(Output("theirs"),
              AllOf(HasSubstr("speaks TLS"), HasSubstr("no certificate")));
  EXPECT_EQ(AsOther({"stop", "--chief", chief}), 1);
  EXPECT_NE(AsOther({"stop", "--log_dir", logs()}), 0);
  ASSERT_EQ(
      AsOther({"certs", "make", "--cluster", directory_.Join("cluster.json"),
               "--job", "e2e", "--out", elsewhere() + "/certs"}),
      0);
  EXPECT_NE(AsOther({"stop", "--chief", chief, "--tls_dir",
                     elsewhere() + "/certs/operator-steer"}),
            0);
  EXPECT_THAT(Output("theirs"), HasSubstr("not signed by an authority"));

  EXPECT_EQ(Own({"status", "--log_dir", logs()}), 0) << Output("own");
  EXPECT_EQ(Own({"stop", "--log_dir", logs()}), 0) << Output("own");
  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 3}));
}

// The counterpart: without certificates the same commands have an effect.
TEST_F(RunSecurityTest, AnotherUserCanStopAnInsecureRun) {
  if (geteuid() != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root can become another user";
  }
  const auto run = StartAndWait({"--insecure"});

  EXPECT_EQ(AsOther({"status", "--chief", ChiefAddress()}), 0);
  EXPECT_EQ(AsOther({"stop", "--chief", ChiefAddress()}), 0);

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 3}));
}

TEST_F(RunSecurityTest, CommandsOfTheSameUserFindTheCertificate) {
  const auto run = StartAndWait({"--tls"});

  EXPECT_EQ(Own({"status", "--chief", ChiefAddress()}), 1);
  EXPECT_THAT(Output("own"), HasSubstr("--log_dir of a `lockstep run`"));
  EXPECT_EQ(Own({"set", "--log_dir", logs(), "learning_rate=0.5"}), 0)
      << Output("own");
  EXPECT_EQ(Own({"checkpoint", "--log_dir", logs()}), 0) << Output("own");
  EXPECT_EQ(Own({"stop", "--log_dir", logs()}), 0) << Output("own");
  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 3}));
}

TEST_F(RunSecurityTest, CtrlCStopsTheJobWithACheckpoint) {
  const auto run = StartAndWait({});

  ASSERT_THAT(run->Signal(SIGINT), IsOk());

  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 130}));
  const auto steps = ListStepDirectories(job_->checkpoints());
  ASSERT_THAT(steps, IsOkAndHolds(Not(IsEmpty())));
  EXPECT_THAT(
      run->ReadLog(),
      AllOf(HasSubstr(absl::StrCat("interrupted: step ", steps->back(), " of")),
            Not(HasSubstr("sent SIGTERM"))));
}

TEST_F(RunSecurityTest, KeysArePrivateAndGoWithTheRun) {
  const std::string state = directory_.Join("state");
  const auto run = StartAndWait({"--state_dir", state});
  const fs::path keys =
      fs::read_symlink(logs() + "/operator_tls").parent_path();

  EXPECT_EQ(fs::status(keys.parent_path()).permissions(), fs::perms::owner_all);
  EXPECT_FALSE(fs::exists(keys / "ca.key"));
  EXPECT_THAT(KeysIn(state), IsEmpty());

  ASSERT_THAT(run->Signal(SIGTERM), IsOk());
  EXPECT_THAT(run->Wait(kPatience), IsOkAndHolds(cli::TaskExit{.code = 143}));
  EXPECT_FALSE(fs::exists(keys.parent_path())) << keys;
  EXPECT_THAT(KeysIn(state), IsEmpty());
  EXPECT_THAT(KeysIn(logs()), IsEmpty());
}

TEST_F(RunSecurityTest, BitsAreThoseOfAnInsecureRun) {
  constexpr int64_t kSteps = 60;
  const std::string steps = absl::StrCat("train_steps=", kSteps);
  const std::string plain = directory_.Join("plain");
  const auto secure = Start(steps, {});
  ASSERT_THAT(secure->Wait(kPatience), IsOkAndHolds(cli::TaskExit{}));
  const auto insecure =
      Start(steps, {"--insecure", "--set", "checkpoint.directory=" + plain});
  ASSERT_THAT(insecure->Wait(kPatience), IsOkAndHolds(cli::TaskExit{}));

  ExpectSameBits(job_->checkpoints(), plain, kSteps);
}

}  // namespace
}  // namespace lockstep::testing
