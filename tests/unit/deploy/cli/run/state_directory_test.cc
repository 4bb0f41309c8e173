#include "deploy/cli/run/state_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

int CountEntries(const std::string& path) {
  return static_cast<int>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  stat(path.c_str(), &info);
  return info.st_mode & 0777;
}

TEST(StateDirectoryTest, IsPrivateAndGoesWithItsOwner) {
  TempDir parent;
  {
    const auto state = StateDirectory::CreateIn(parent.path());
    ASSERT_THAT(state, IsOk());
    EXPECT_EQ(ModeOf((*state)->path()), 0700u);
    std::ofstream((*state)->path() + "/variables") << "x";
  }

  EXPECT_EQ(CountEntries(parent.path()), 0);
}

TEST(StateDirectoryTest, SeveralRunsHaveSeveral) {
  TempDir parent;
  const auto one = StateDirectory::CreateIn(parent.path());
  const auto two = StateDirectory::CreateIn(parent.path());

  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  EXPECT_NE((*one)->path(), (*two)->path());
  EXPECT_TRUE(fs::exists((*one)->path()));
}

TEST(StateDirectoryTest, NothingElseIsSwept) {
  TempDir parent;
  fs::create_directory(parent.Join("other"));
  std::ofstream(parent.Join("lockstep-run-file")) << "x";
  fs::create_directory_symlink(parent.Join("other"),
                               parent.Join("lockstep-run-link"));

  ASSERT_THAT(StateDirectory::CreateIn(parent.path()), IsOk());

  EXPECT_EQ(CountEntries(parent.path()), 3);
}

TEST(StateDirectoryTest, AParentThatIsMissingIsNamed) {
  EXPECT_THAT(StateDirectory::CreateIn("/nowhere/at/all"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/nowhere/at/all")));
}

TEST(StateDirectoryTest, ADirectoryOfTheUsersStays) {
  TempDir parent;
  const std::string path = parent.Join("deep/state");
  {
    const auto state = StateDirectory::Adopt(path);
    ASSERT_THAT(state, IsOk());
    EXPECT_EQ((*state)->path(), path);
    EXPECT_EQ(ModeOf(path), 0700u);
    EXPECT_THAT((*state)->MakeChild(path + "/ps-0"), IsOk());
    EXPECT_THAT((*state)->MakeChild(path + "/ps-0"), IsOk());
  }

  EXPECT_TRUE(fs::exists(path + "/ps-0"));
  EXPECT_THAT(StateDirectory::Adopt(path), IsOk());
}

TEST(StateDirectoryTest, OneThatOthersCanEnterIsNotTaken) {
  TempDir parent;
  const std::string path = parent.Join("state");
  ASSERT_THAT(StateDirectory::Adopt(path), IsOk());
  fs::create_directory_symlink(path, parent.Join("link"));

  EXPECT_THAT(
      StateDirectory::Adopt(parent.Join("link")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a link")));
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  EXPECT_THAT(StateDirectory::Adopt(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("chmod 700 " + path)));
}

TEST(StateDirectoryTest, TwoRunsDoNotShareOne) {
  TempDir parent;
  const auto state = StateDirectory::Adopt(parent.path());
  ASSERT_THAT(state, IsOk());

  EXPECT_THAT(StateDirectory::Adopt(parent.path()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another run")));
}

TEST(StateDirectoryTest, AFileIsNoDirectory) {
  TempDir parent;
  std::ofstream(parent.Join("file")) << "x";

  EXPECT_THAT(StateDirectory::Adopt(parent.Join("file")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StateDirectoryTest, TheDefaultParentCanBeWritten) {
  EXPECT_EQ(access(StateDirectory::DefaultParent().c_str(), W_OK), 0);
}

}  // namespace
}  // namespace lockstep::cli
