#include "deploy/cli/run/task_command.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The command without a program of the user, as the fixture calls it.
class BuiltInTask : public TaskCommand {
 public:
  using TaskCommand::TaskCommand;
  int Run(Terminal& terminal, std::ostream& err) const {
    return TaskCommand::Run({}, terminal, err);
  }
};

class TaskCommandTest : public testing::CommandTest {
 protected:
  TaskCommandTest() {
    unsetenv("RUNTIME_DIRECTORY");
    std::filesystem::create_directory(Path("fashion"));
    Write("fashion/cluster.json",
          R"({"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1"]}})");
  }
  ~TaskCommandTest() override { unsetenv("RUNTIME_DIRECTORY"); }

  int Task(std::vector<std::string> args) {
    args.insert(args.begin(), {"--config_dir", Path("")});
    return Run<BuiltInTask>("task", args);
  }
};

TEST_F(TaskCommandTest, ShowsWhatItWouldRun) {
  EXPECT_EQ(Task({"--show", "--program_dir", "/bin", "chief", "fashion"}), 0);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("TF_CONFIG='{\"cluster\":"),
                    HasSubstr(absl::StrCat(" /bin/chief --job ", Path(""),
                                           "/fashion/"
                                           "job.textproto\n"))));
}

TEST_F(TaskCommandTest, WhatFollowsTheInstanceIsTheProgramsOwn) {
  EXPECT_EQ(Task({"--show", "worker", "fashion.0", "--compute_threads", "2"}),
            0);
  EXPECT_THAT(Out(), HasSubstr("/worker --compute_threads 2\n"));
}

TEST_F(TaskCommandTest, WhatItShowsCanBePasted) {
  EXPECT_EQ(Task({"--show", "--program_dir", "/my programs", "worker",
                  "fashion.0", "--data_root", "it's $HOME; \"x\""}),
            0);
  EXPECT_THAT(Out(), HasSubstr(" '/my programs/worker' --data_root "
                               "'it'\\''s $HOME; \"x\"'\n"));
}

TEST_F(TaskCommandTest, AServersStateIsInTheRuntimeDirectory) {
  setenv("RUNTIME_DIRECTORY", "/run/lockstep/ps", 1);

  EXPECT_EQ(Task({"--show", "ps", "fashion.0"}), 0);
  EXPECT_THAT(Out(), HasSubstr("/ps_server --state_dir /run/lockstep/ps\n"));
}

TEST_F(TaskCommandTest, AMissingConfigurationIsNamed) {
  EXPECT_EQ(Task({"ps", "other.0"}), 2);
  EXPECT_THAT(Err(),
              HasSubstr("lockstep task: " + Path("other") + "/cluster.json"));
}

TEST_F(TaskCommandTest, AMissingProgramIsNamed) {
  EXPECT_EQ(Task({"--program_dir", "/nowhere", "worker", "fashion"}), 2);
  EXPECT_THAT(Err(), HasSubstr("/nowhere/worker: cannot be run: No such"));
}

TEST_F(TaskCommandTest, BecomesTheProgramWithItsTfConfig) {
  Write("worker",
        "#!/bin/sh\n[ \"$1\" = --flag ] && case $TF_CONFIG in "
        "*worker*) exit 7;; esac\n");
  std::filesystem::permissions(Path("worker"),
                               std::filesystem::perms::owner_all);

  EXPECT_EXIT(Task({"--program_dir", Path(""), "worker", "fashion", "--flag"}),
              ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lockstep::cli
