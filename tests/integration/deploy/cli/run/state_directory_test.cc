#include "deploy/cli/run/state_directory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

int CountEntries(const std::string& path) {
  return static_cast<int>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

// Lets a process create a directory and end without removing it.
void LeaveOneBehind(const std::string& parent) {
  const pid_t pid = fork();
  if (pid == 0) {
    const auto state = StateDirectory::CreateIn(parent);
    _exit(state.ok() ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  ASSERT_EQ(status, 0);
}

TEST(StateDirectoryTest, DirectoryOfADeadLauncherIsRemoved) {
  const testing::TempDir parent;
  LeaveOneBehind(parent.path());
  ASSERT_EQ(CountEntries(parent.path()), 1);

  const auto state = StateDirectory::CreateIn(parent.path());

  ASSERT_OK(state);
  EXPECT_EQ(CountEntries(parent.path()), 1);
  EXPECT_TRUE(fs::exists((*state)->path()));
}

}  // namespace
}  // namespace lockstep::cli
