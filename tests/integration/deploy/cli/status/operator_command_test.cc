#include "deploy/cli/status/operator_command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/time/clock.h"
#include "common/status/status_json.h"
#include "deploy/cli/run/port_reservation.h"
#include "deploy/cli/tasks/log_directory.h"
#include "deploy/cli/tasks/log_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TrainingResponse;
using ::testing::HasSubstr;

class OperatorCommandTest : public ::testing::Test {
 protected:
  OperatorCommandTest() {
    chief_.Say(TrainingResponse());
    EXPECT_EQ(pipe2(pipe_, O_NONBLOCK), 0);
  }
  ~OperatorCommandTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  int Status(std::vector<std::string> args) {
    return Run<StatusCommand>("status", std::move(args));
  }
  int Stop(std::vector<std::string> args) {
    return Run<StopCommand>("stop", std::move(args));
  }

  std::string Out() const {
    std::string text(1 << 16, '\0');
    const ssize_t got = read(pipe_[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }
  // Waits for `text` while the command runs in another thread.
  void ReadUntil(const std::string& text) const {
    std::string read;
    pollfd readable = {pipe_[0], POLLIN, 0};
    while (read.find(text) == std::string::npos) {
      ASSERT_EQ(poll(&readable, 1, 60'000), 1) << text << " in " << read;
      read += Out();
    }
  }
  std::string Err() const { return err_.str(); }

  // Whole from the start, as the launcher writes it.
  void EndRun() const {
    EXPECT_TRUE(
        WriteTextFile(directory_.Join("result.json"),
                      FormatStatusJson(JobStatus(), 2,
                                       RunResult{.state = JobState::kStopped,
                                                 .summary = "stopped: lunch"}))
            .ok());
  }

  TempDir directory_;
  FakeCoordinator chief_;

 private:
  template <typename Command>
  int Run(const std::string& name, std::vector<std::string> args) {
    CLI::App app;
    const Command command(app);
    args.insert(args.begin(), name);
    std::reverse(args.begin(), args.end());  // CLI11's order
    app.parse(args);
    Terminal terminal(pipe_[1], nullptr, nullptr);
    err_.str("");
    return command.Run(terminal, err_);
  }

  int pipe_[2] = {-1, -1};
  std::ostringstream err_;
};

std::vector<std::string> Chief(const std::string& address) {
  return {"--chief", address};
}

TEST_F(OperatorCommandTest, StatusShowsWhatTheChiefSays) {
  EXPECT_EQ(Status(Chief(chief_.address())), 0) << Err();

  EXPECT_THAT(Out(), HasSubstr("job fashion: training, step 7 of 100, 3.0 s"));
}

TEST_F(OperatorCommandTest, StatusAsJsonCanBeParsed) {
  EXPECT_EQ(Status({"--chief", chief_.address(), "--json"}), 0) << Err();

  EXPECT_EQ(nlohmann::json::parse(Out(), nullptr, false)["global_step"], 7);
}

TEST_F(OperatorCommandTest, ALogDirectoryNamesTheChief) {
  std::ofstream(directory_.Join("chief.address")) << chief_.address() << "\n";

  EXPECT_EQ(Status({"--log_dir", directory_.path()}), 0) << Err();
}

TEST_F(OperatorCommandTest, ARunThatIsOverTellsItsResult) {
  const RunResult result = {.state = JobState::kFailed,
                            .exit_code = 1,
                            .summary = "failed: step 7 of 100, 3.0 s; why",
                            .ended_at = absl::Now() - absl::Hours(3)};
  std::ofstream(directory_.Join("result.json"))
      << FormatStatusJson({.step = 7}, 2, result);

  EXPECT_EQ(Status({"--log_dir", directory_.path()}), 5) << Err();
  EXPECT_EQ(Out(), "failed: step 7 of 100, 3.0 s; why; ended 3.0 h ago\n");

  EXPECT_EQ(Status({"--log_dir", directory_.path(), "--json"}), 5) << Err();
  const auto json = nlohmann::json::parse(Out(), nullptr, false);
  EXPECT_EQ(json["global_step"], 7);
  EXPECT_EQ(json["result"]["exit_code"], 1);

  EXPECT_EQ(Stop({"--log_dir", directory_.path()}), 1);
  EXPECT_THAT(Err(), HasSubstr("is over: failed: step 7 of 100, 3.0 s; why; "
                               "this command needs one that goes on"));
}

TEST_F(OperatorCommandTest, ARunThatWasKilledHasNoResult) {
  { ASSERT_TRUE(LogDirectory::Open(directory_.path(), "", "job").ok()); }

  EXPECT_EQ(Status({"--log_dir", directory_.path()}), 1);
  EXPECT_THAT(Err(), HasSubstr("it was ended by force, or had no room"));
}

TEST_F(OperatorCommandTest, SilentChiefOfARunThatEndsMeanwhileTellsItsResult) {
  std::ofstream(directory_.Join("chief.address")) << chief_.address() << "\n";
  chief_.Shutdown();
  std::thread end([&] {
    absl::SleepFor(absl::Milliseconds(100));  // while the command waits
    EndRun();
  });

  EXPECT_EQ(Status({"--log_dir", directory_.path()}), 6) << Err();

  end.join();
  EXPECT_THAT(Out(), HasSubstr("stopped: lunch"));
}

TEST_F(OperatorCommandTest, SilentChiefOfARunThatGoesOnIsExplained) {
  std::ofstream(directory_.Join("chief.address")) << chief_.address() << "\n";
  chief_.Shutdown();

  EXPECT_EQ(Status({"--log_dir", directory_.path()}), 1);

  EXPECT_THAT(Err(), HasSubstr("no chief answers"));
  EXPECT_THAT(Err(), HasSubstr("the run of " + directory_.path() +
                               " goes on: its chief is being started again, or "
                               "is suspended"));

  EXPECT_EQ(Stop({"--log_dir", directory_.path()}), 1);
  EXPECT_THAT(Err(), HasSubstr("the run of " + directory_.path() +
                               " goes on: its chief is being started again"));
}

TEST_F(OperatorCommandTest, AWatchGoesOnWhileTheChiefIsStartedAgain) {
  // Keeps other processes from using this port meanwhile.
  const absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_TRUE(port.ok()) << port.status();
  const std::string address = absl::StrCat("127.0.0.1:", port->port());
  FakeCoordinator first(address);
  first.Say(TrainingResponse());
  std::thread restart([&] {
    ReadUntil("job fashion: training");
    first.Shutdown();
    ReadUntil("the chief has not answered for");
    v1::GetStatusResponse done = TrainingResponse();
    done.set_state(v1::JOB_DONE);
    FakeCoordinator again(address);
    again.Say(done);
    ReadUntil("job fashion: done");
  });

  EXPECT_EQ(Status({"--chief", address, "--watch", "--interval", "0.1"}), 0)
      << Err();

  restart.join();
}

TEST_F(OperatorCommandTest, AWatchEndsWithTheRunThoughItsChiefIsGone) {
  std::ofstream(directory_.Join("chief.address")) << chief_.address() << "\n";
  std::thread end([&] {
    ReadUntil("job fashion: training");
    chief_.Shutdown();
    EndRun();
  });

  EXPECT_EQ(
      Status({"--log_dir", directory_.path(), "--watch", "--interval", "0.1"}),
      6)
      << Err();

  end.join();
  EXPECT_THAT(Out(), HasSubstr("stopped: lunch"));
}

TEST_F(OperatorCommandTest, AChiefThatStaysAwayEndsTheWatch) {
  std::thread end([&] {
    ReadUntil("job fashion: training");
    chief_.Shutdown();
  });

  EXPECT_EQ(Status({"--chief", chief_.address(), "--watch", "--interval", "0.1",
                    "--patience", "1"}),
            1);

  end.join();
}

TEST_F(OperatorCommandTest, TheEndOfAWatchSaysThatItsRunGoesOn) {
  std::ofstream(directory_.Join("chief.address")) << chief_.address() << "\n";
  std::thread end([&] {
    ReadUntil("job fashion: training");
    chief_.Shutdown();
  });

  EXPECT_EQ(Status({"--log_dir", directory_.path(), "--watch", "--interval",
                    "0.1", "--patience", "1"}),
            1);

  end.join();
  EXPECT_THAT(Err(), HasSubstr("the run of " + directory_.path() +
                               " goes on: its chief is being started again"));
}

TEST_F(OperatorCommandTest, AClusterFileNamesTheChief) {
  std::ofstream(directory_.Join("c.json"))
      << R"({"cluster": {"ps": ["x:1"], "worker": ["x:2"], "chief": [")"
      << chief_.address() << "\"]}}";

  EXPECT_EQ(Status({"--cluster", directory_.Join("c.json")}), 0) << Err();
}

TEST_F(OperatorCommandTest, ExactlyOneChiefIsWanted) {
  EXPECT_EQ(Status({}), 2);
  EXPECT_THAT(Err(), HasSubstr("0 of --chief, --cluster and --log_dir"));

  EXPECT_EQ(Status({"--chief", "x:1", "--log_dir", "y"}), 2);
  EXPECT_THAT(Err(), HasSubstr("2 of"));
  std::ofstream(directory_.Join("result.json"))
      << FormatStatusJson(JobStatus(), 2, RunResult());
  EXPECT_EQ(Status({"--chief", "x:1", "--log_dir", directory_.path()}), 2);
  EXPECT_THAT(Err(), HasSubstr("2 of"));
}

TEST_F(OperatorCommandTest, AnIdentityMapWithoutCertificatesIsRefused) {
  EXPECT_EQ(Status({"--chief", chief_.address(), "--identity_map", "map"}), 2);

  EXPECT_THAT(Err(), HasSubstr("--identity_map is map, but there is no "
                               "--tls_dir"));
}

TEST_F(OperatorCommandTest, NonsenseIsRefused) {
  EXPECT_EQ(Status(Chief("no-port")), 2);
  EXPECT_THAT(Err(), HasSubstr("--chief"));

  EXPECT_EQ(Status({"--log_dir", "/nowhere"}), 2);
  EXPECT_THAT(Err(), HasSubstr("/nowhere is no run's; name the folder"));
}

TEST_F(OperatorCommandTest, AnAbsentChiefIsNamedAfterFiveSeconds) {
  EXPECT_EQ(Status(Chief("127.0.0.1:1")), 1);

  EXPECT_THAT(Err(), HasSubstr("no chief answers at 127.0.0.1:1 within 5s"));
}

TEST_F(OperatorCommandTest, StopGivesTheReason) {
  EXPECT_EQ(Stop({"--chief", chief_.address(), "--reason", "lunch"}), 0)
      << Err();

  EXPECT_EQ(chief_.stop_reason(), "lunch");
  EXPECT_THAT(Out(), HasSubstr(chief_.address()));
}

TEST_F(OperatorCommandTest, AReasonThatIsNoTextIsRefused) {
  EXPECT_EQ(Stop({"--chief", chief_.address(), "--reason", "\xff\xfe"}), 2);

  EXPECT_THAT(Err(), HasSubstr("--reason is \"\\xff\\xfe\", which is not "
                               "UTF-8; write it in UTF-8"));
}

TEST_F(OperatorCommandTest, AChiefThatRefusesToStopIsAFailure) {
  chief_.RefuseToStop();

  EXPECT_EQ(Stop(Chief(chief_.address())), 1);
  EXPECT_THAT(Err(), HasSubstr("not today"));
}

}  // namespace
}  // namespace lockstep::cli
