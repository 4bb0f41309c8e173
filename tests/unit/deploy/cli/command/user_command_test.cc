#include "deploy/cli/command/user_command.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ResolveCommandTest : public ::testing::Test {
 protected:
  ResolveCommandTest() {
    std::ofstream(program_) << "#!/bin/sh\n";
    chmod(program_.c_str(), 0755);
    std::ofstream(directory_.Join("text")) << "no program\n";
  }

  const TempDir directory_;
  const std::string program_ = directory_.Join("train");
  const std::string path_ = "/nowhere:" + directory_.path();
};

TEST_F(ResolveCommandTest, ProgramIsLookedForInPath) {
  EXPECT_THAT(ResolveCommand({"train", "--rate", "1"}, path_),
              IsOkAndHolds(ElementsAre(program_, "--rate", "1")));
}

TEST_F(ResolveCommandTest, PathStaysAsItIs) {
  EXPECT_THAT(ResolveCommand({program_}, ""),
              IsOkAndHolds(ElementsAre(program_)));
}

TEST_F(ResolveCommandTest, MissingProgramIsRefusedByName) {
  const auto refused = [&](const UserCommand& command, const char* why) {
    EXPECT_THAT(ResolveCommand(command, path_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused({}, "is empty");
  refused({""}, "is empty");
  refused({"text"}, "text: there is no such program in PATH");
  refused({"pyton"}, "pyton: there is no such program in PATH");
  refused({"train.py"}, "give a script with the program that reads it");
  refused({directory_.path()}, "is no program that can be run");
  refused({directory_.Join("text")},
          "is no program that can be run; give the program that reads it");
}

TEST_F(ResolveCommandTest, ProgramOfAShellCommandIsLookedFor) {
  for (const char* good : {"train --rate 1", " cd /tmp && train", "A=1 train",
                           "\"train\"", "(train)"}) {
    EXPECT_THAT(CheckShellCommand(good, path_), IsOk()) << good;
  }
  const auto refused = [&](const std::string& text, const char* why) {
    EXPECT_THAT(CheckShellCommand(text, path_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("pyton eval.py", "pyton: there is no such program in PATH");
  refused(directory_.Join("text"), "is no program that can be run");
  refused(" ", "is empty");
}

TEST(UserCommandTest, SettingWithoutItsFlagIsNoProgram) {
  EXPECT_THAT(CheckIsNoSetting({"learning_rate=0.1", "-x"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("write --set learning_rate=0.1")));
  EXPECT_THAT(CheckIsNoSetting({}), IsOk());
  EXPECT_THAT(CheckIsNoSetting({"train", "rate=1"}), IsOk());
  EXPECT_THAT(CheckIsNoSetting({"/jobs/rate=1/train"}), IsOk());
}

TEST(UserCommandTest, WordsAfterTheFirstMarkAreTheCommand) {
  const char* const argv[] = {"lockstep", "task", "--show", "--",
                              "a",        "--",   "-b"};
  int argc = 7;

  EXPECT_THAT(CutCommand(argc, argv), ElementsAre("a", "--", "-b"));
  EXPECT_EQ(argc, 3);
  EXPECT_TRUE(CutCommand(argc, argv).empty());
  EXPECT_EQ(argc, 3);
}

TEST(UserCommandTest, AMarkThatNothingFollowsIsLeftToTheParser) {
  const char* const argv[] = {"lockstep", "run", "--"};
  int argc = 3;

  EXPECT_TRUE(CutCommand(argc, argv).empty());
  EXPECT_EQ(argc, 3);
}

TEST(UserCommandTest, TextIsRunByTheShell) {
  EXPECT_THAT(ShellCommand("python3 eval.py"),
              ElementsAre("/bin/sh", "-c", "python3 eval.py"));
}

TEST(UserCommandTest, EnvironmentHasThreadsAndCertificates) {
  const auto nothing = [](const char*) -> const char* { return nullptr; };

  EXPECT_THAT(CommandEnvironment(2, "/tls/worker-1", nothing),
              UnorderedElementsAre(Pair("OMP_NUM_THREADS", "2"),
                                   Pair("PYTHONUNBUFFERED", "1"),
                                   Pair("LOCKSTEP_TLS_DIR", "/tls/worker-1")));
  EXPECT_EQ(CommandEnvironment(2, "", nothing).count("LOCKSTEP_TLS_DIR"), 0u);
}

TEST(UserCommandTest, TheUsersOwnVariablesStay) {
  const auto all = [](const char*) { return "7"; };

  EXPECT_EQ(CommandEnvironment(2, "", all).size(), 0u);
}

}  // namespace
}  // namespace lockstep::cli
