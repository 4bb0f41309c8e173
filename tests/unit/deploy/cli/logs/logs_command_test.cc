#include "deploy/cli/logs/logs_command.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LogsCommandTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  void Append(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::app) << text;
  }
  std::string Line(const std::string& text) const {
    return "2026-11-23T11:37:20.123 info    worker 1: " + text + "\n";
  }

  testing::TempDir dir_;
};

// Runs `lockstep logs` with these words and returns its output.
std::string Shown(std::vector<std::string> words, int code) {
  CLI::App app;
  const LogsCommand command(app);
  words.insert(words.begin(), "logs");
  std::reverse(words.begin(), words.end());
  app.parse(words);
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  std::ostringstream err;
  Terminal terminal(fds[1], nullptr, nullptr);
  EXPECT_EQ(command.Run(terminal, err), code);
  close(fds[1]);
  std::string out = err.str();
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fds[0], buffer, sizeof(buffer))) > 0;) {
    out.append(buffer, static_cast<size_t>(n));
  }
  close(fds[0]);
  return out;
}

TEST_F(LogsCommandTest, ShowsARunThatIsOver) {
  Append("worker-1.log", Line("one"));
  Append("ps-0.log", "2026-11-23T11:37:19.000 warning ps 0: zero\n");
  Append("result.json", "{}");
  EXPECT_EQ(Shown({"--log_dir", dir_.path(), "--follow"}, 0),
            "11:37:19.000 ps 0  warning zero\n"
            "11:37:20.123 worker 1  one\n");
  EXPECT_EQ(Shown({"--log_dir", dir_.path(), "--task", "worker:1"}, 0),
            "11:37:20.123 worker 1  one\n");
  EXPECT_EQ(Shown({"--log_dir", dir_.path(), "--level", "warning"}, 0),
            "11:37:19.000 ps 0  warning zero\n");
}

TEST_F(LogsCommandTest, NamesTheTasksThatThereAre) {
  Append("worker-1.log", Line("one"));
  Append("ps-0.log", "2026-11-23T11:37:19.000 warning ps 0: zero\n");
  const std::string refused =
      Shown({"--log_dir", dir_.path(), "--task", "worker:9"}, 1);
  EXPECT_THAT(refused, HasSubstr("\"worker 9\""));
  EXPECT_THAT(refused, HasSubstr("ps 0, worker 1"));
  // The one of two tasks that is there is shown.
  EXPECT_THAT(Shown({"--log_dir", dir_.path(), "--task", "evaluator", "--task",
                     "worker"},
                    1),
              AllOf(HasSubstr("worker 1  one"), HasSubstr("\"evaluator\"")));
  // A task without a line of this level is no mistake.
  EXPECT_EQ(Shown({"--log_dir", dir_.path(), "--task", "worker:1", "--level",
                   "error"},
                  0),
            "");
}

// A program in place of journalctl prints entries of two tasks.
class JournalTest : public LogsCommandTest {
 protected:
  JournalTest() {
    Append("entries",
           R"({"__REALTIME_TIMESTAMP":"1795433839000000","PRIORITY":"4",)"
           R"("LOCKSTEP_TASK":"ps 0","MESSAGE":"ps 0: zero"})"
           "\n"
           R"({"__REALTIME_TIMESTAMP":"1795433840123000","PRIORITY":"6",)"
           R"("LOCKSTEP_TASK":"worker 1","MESSAGE":"worker 1: one"})"
           "\n");
    Append("journalctl", "#!/bin/sh\nexec cat '" + Path("entries") + "'\n");
    std::filesystem::permissions(Path("journalctl"),
                                 std::filesystem::perms::owner_all);
    setenv("PATH", (dir_.path() + ":" + path_).c_str(), 1);
  }
  ~JournalTest() override { setenv("PATH", path_.c_str(), 1); }

 private:
  const std::string path_ = getenv("PATH");
};

TEST_F(JournalTest, LinesOfATaskAreShown) {
  EXPECT_THAT(Shown({"--journal", "--task", "worker:1"}, 0),
              AllOf(HasSubstr("worker 1  one"), Not(HasSubstr("ps 0"))));
}

TEST_F(JournalTest, ATaskWithoutLinesIsNamedWithThoseThatHaveSome) {
  EXPECT_THAT(Shown({"--journal", "--task", "worker:9"}, 1),
              HasSubstr("no line of --task \"worker 9\" in the journal, which "
                        "has lines of ps 0, worker 1\n"));
  EXPECT_THAT(Shown({"--journal", "--task", "worker:9", "--since", "1h"}, 1),
              HasSubstr("in the journal since 1h, which has"));
  // A task without a line of this level is no mistake.
  EXPECT_EQ(Shown({"--journal", "--task", "worker:1", "--level", "error"}, 0),
            "");
}

TEST_F(LogsCommandTest, ADirectoryThatIsNotThereIsNotFollowed) {
  EXPECT_THAT(Shown({"--log_dir", dir_.path() + "/missing", "--follow"}, 1),
              HasSubstr("has no logs of tasks"));
}

TEST_F(LogsCommandTest, ADirectoryThatCannotBeReachedIsNamedWithTheReason) {
  std::filesystem::create_symlink("loop", Path("loop"));
  for (const std::string& name : {Path("loop"), Path(std::string(300, 'x'))}) {
    EXPECT_THAT(Shown({"--log_dir", name, "--follow"}, 2),
                AllOf(HasSubstr(name), HasSubstr("cannot be read: ")));
    EXPECT_THAT(Shown({"--log_dir", name}, 2), HasSubstr("cannot be read: "));
  }
}

TEST_F(LogsCommandTest, RefusesWhatItCannotShow) {
  EXPECT_THAT(Shown({"--log_dir", dir_.path()}, 1),
              HasSubstr("has no logs of tasks"));
  EXPECT_THAT(Shown({}, 2), HasSubstr("neither --log_dir nor --journal"));
  EXPECT_THAT(Shown({"--log_dir", "x", "--journal"}, 2), HasSubstr("both"));
  EXPECT_THAT(Shown({"--log_dir", "x", "--level", "loud"}, 2),
              HasSubstr("--level is \"loud\""));
  EXPECT_THAT(Shown({"--log_dir", "x", "--task", "x"}, 2), HasSubstr("--task"));
  EXPECT_THAT(Shown({"--log_dir", "x", "--since", "x"}, 2),
              HasSubstr("--since"));
}

}  // namespace
}  // namespace lockstep::cli
