#include "deploy/cli/status/steer_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "common/status/status_json.h"
#include "deploy/cli/tasks/log_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TrainingResponse;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(ParseSettingsTest, TakesBothOfThem) {
  const auto change =
      ParseSettings({"replicas_to_aggregate=3", "learning_rate=5e-2"});

  ASSERT_OK(change);
  EXPECT_THAT(change->replicas_to_aggregate, Optional(3));
  EXPECT_THAT(change->learning_rate, Optional(0.05));
}

TEST(ParseSettingsTest, RefusesUnknownSettingsAndInvalidNumbers) {
  for (const auto& [text, why] :
       std::vector<std::pair<std::string, std::string>>{
           {"replicas_to_aggregate", "write replicas_to_aggregate=COUNT"},
           {"learning_rate", "write learning_rate=NUMBER"},
           {"replicas_to_aggregate=", "is \"\", but must be a whole number"},
           {"replicas_to_aggregate=2.5", "is \"2.5\", but must be a whole"},
           {"learning_rate=fast", "is \"fast\", but must be a number"},
           {"seed=3", "seed cannot be changed while the job runs"},
           {"learning_rte=0.1", "did you mean learning_rate?"},
           {"=3", "cannot be changed"},
           {"", "cannot be changed"}}) {
    EXPECT_THAT(ParseSettings({text}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)))
        << text;
  }
  EXPECT_FALSE(ParseSettings({"learning_rate=1", "learning_rate=2"}).ok());
}

class SteerCommandsTest : public ::testing::Test {
 protected:
  SteerCommandsTest() {
    chief_.Say(TrainingResponse());
    EXPECT_EQ(pipe2(pipe_, O_NONBLOCK), 0);
  }
  ~SteerCommandsTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  int Run(std::vector<std::string> args) {
    return RunWith(std::move(args), {"--chief", chief_.address()});
  }

  // Runs the command with `chief`, the flag that names the chief.
  int RunWith(std::vector<std::string> args,
              const std::vector<std::string>& chief) {
    CLI::App app;
    const SteerCommands commands(app);
    args.insert(args.begin() + 1, chief.begin(), chief.end());
    std::reverse(args.begin(), args.end());  // CLI11's order
    app.parse(args);
    EXPECT_TRUE(commands.chosen());
    Terminal terminal(pipe_[1], nullptr, nullptr);
    err_.str("");
    return commands.Run(terminal, err_);
  }

  std::string Out() const {
    char buffer[8192];
    const ssize_t got = read(pipe_[0], buffer, sizeof(buffer));
    return got > 0 ? std::string(buffer, got) : "";
  }

  FakeCoordinator chief_;
  std::ostringstream err_;

 private:
  int pipe_[2] = {-1, -1};
};

TEST_F(SteerCommandsTest, SetAsksAndWaitsUntilItIsSo) {
  EXPECT_EQ(Run({"set", "replicas_to_aggregate=3", "learning_rate=0.5"}), 0)
      << err_.str();

  EXPECT_EQ(chief_.change().replicas_to_aggregate(), 3);
  EXPECT_EQ(chief_.change().learning_rate(), 0.5);
  EXPECT_FALSE(chief_.change().has_paused());
  EXPECT_THAT(Out(), HasSubstr("job fashion: training"));
}

TEST_F(SteerCommandsTest, ARefusalIsToldWithItsReason) {
  EXPECT_EQ(Run({"set", "replicas_to_aggregate=100"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("too many"));

  EXPECT_EQ(Run({"set", "seed=100"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("seed cannot be changed"));
}

TEST_F(SteerCommandsTest, PauseAndResumeSayWhich) {
  EXPECT_EQ(Run({"pause"}), 0) << err_.str();
  EXPECT_TRUE(chief_.change().paused());
  EXPECT_THAT(Out(), HasSubstr("job fashion: paused, step 7"));

  EXPECT_EQ(Run({"resume"}), 0) << err_.str();
  EXPECT_TRUE(chief_.change().has_paused());
  EXPECT_FALSE(chief_.change().paused());
}

TEST_F(SteerCommandsTest, RemoveNamesTheWorker) {
  EXPECT_EQ(Run({"remove", "2"}), 0) << err_.str();

  EXPECT_EQ(chief_.change().remove_worker(), 2);
  EXPECT_EQ(Run({"remove", "worker:3"}), 0) << err_.str();
  EXPECT_EQ(chief_.change().remove_worker(), 3);
}

// Another change may have the revision that the removal was to have.
TEST_F(SteerCommandsTest, RemoveWaitsUntilTheWorkerIsOut) {
  v1::GetStatusResponse response = TrainingResponse();
  for (const int worker : {0, 1, 2, 3}) {
    response.mutable_settings()->add_workers(worker);
  }
  chief_.Say(response);

  EXPECT_EQ(Run({"remove", "2", "--timeout", "0"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("not in effect within 0"));

  EXPECT_EQ(Run({"remove", "4", "--timeout", "0"}), 0) << err_.str();
}

TEST_F(SteerCommandsTest, RemoveRefusesInvalidWorkerNames) {
  for (const char* worker : {"ps:1", "-1", "1x", "worker:"}) {
    EXPECT_EQ(Run({"remove", "--", worker}), 2) << worker;
    EXPECT_THAT(err_.str(), HasSubstr(worker));
    EXPECT_THAT(err_.str(), HasSubstr("worker:1"));
  }
}

TEST_F(SteerCommandsTest, ACheckpointIsWaitedFor) {
  EXPECT_EQ(Run({"checkpoint"}), 0) << err_.str();

  EXPECT_THAT(Out(), HasSubstr("last checkpoint 7"));
}

TEST_F(SteerCommandsTest, RequestThatIsNotInEffectInTimeIsAFailure) {
  chief_.set_effective(false);

  EXPECT_EQ(Run({"checkpoint", "--timeout", "0"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("not in effect within 0"));
  EXPECT_EQ(Run({"pause", "--timeout", "0"}), 1);
}

// The chief of a job that is over leaves without an answer.
TEST_F(SteerCommandsTest, TheEndOfTheRunIsToldToACommandThatWaits) {
  const testing::TempDir run;
  std::ofstream(run.Join("chief.address")) << chief_.address() << "\n";
  chief_.set_effective(false);
  chief_.MarkHeard(run.Join("heard"));
  std::thread end([&] {
    while (!std::filesystem::exists(run.Join("heard"))) {
      std::this_thread::yield();
    }
    EXPECT_OK(WriteTextFile(
        run.Join("result.json"),
        FormatStatusJson(
            JobStatus(), 2,
            RunResult{.state = JobState::kDone, .summary = "done: lunch"})));
    chief_.Shutdown();
  });

  EXPECT_EQ(RunWith({"checkpoint"}, {"--log_dir", run.path()}), 1);

  end.join();
  EXPECT_THAT(err_.str(), HasSubstr("is over: done: lunch"));
}

TEST_F(SteerCommandsTest, ARequestThatIsLateIsNotCalledASilence) {
  const testing::TempDir run;
  std::ofstream(run.Join("chief.address")) << chief_.address() << "\n";
  chief_.set_effective(false);

  EXPECT_EQ(
      RunWith({"checkpoint", "--timeout", "0"}, {"--log_dir", run.path()}), 1);

  EXPECT_THAT(err_.str(), HasSubstr("not in effect within 0"));
  EXPECT_THAT(err_.str(), Not(HasSubstr("is being started again")));
}

}  // namespace
}  // namespace lockstep::cli
