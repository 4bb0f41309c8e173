#include "deploy/cli/tasks/log_directory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
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

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(LogDirectoryTest, EachRunHasTheNextNumber) {
  TempDir parent;
  fs::create_directory(parent.Join("lockstep-job-7"));
  fs::create_directory(parent.Join("lockstep-job-x-9"));

  const auto first = LogDirectory::Open("", parent.path(), "job");
  const auto second = LogDirectory::Open("", parent.path(), "job");

  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*first)->path(), parent.Join("lockstep-job-8"));
  EXPECT_EQ((*second)->path(), parent.Join("lockstep-job-9"));
  EXPECT_TRUE(fs::is_directory(parent.Join("lockstep-job-9")));
}

TEST(LogDirectoryTest, ADirectoryOfTheUsersIsMadeOrTaken) {
  TempDir parent;
  const std::string path = parent.Join("a/b");

  for (int run = 0; run < 2; ++run) {
    const auto directory = LogDirectory::Open(path, "", "job");
    ASSERT_THAT(directory, IsOk());
    EXPECT_EQ((*directory)->path(), path);
  }
}

TEST(LogDirectoryTest, OneThatARunHasIsRefused) {
  TempDir parent;
  const std::string path = parent.Join("logs");
  {
    const auto first = LogDirectory::Open(path, "", "job");
    ASSERT_THAT(first, IsOk());
    EXPECT_FALSE(LogDirectory::IsLeft(path));

    EXPECT_THAT(LogDirectory::Open(path, "", "job").status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("a run that goes on")));
  }

  EXPECT_TRUE(LogDirectory::IsLeft(path));
  EXPECT_THAT(LogDirectory::Open(path, "", "job"), IsOk());
}

TEST(LogDirectoryTest, ADirectoryWithoutALockWasNeverARuns) {
  TempDir parent;

  EXPECT_FALSE(LogDirectory::IsLeft(parent.path()));
  EXPECT_FALSE(LogDirectory::IsLeft("/nowhere/at/all"));
}

TEST(LogDirectoryTest, TheLastTenStayAndThoseThatAreNoRuns) {
  TempDir parent;
  const auto running = LogDirectory::Open("", parent.path(), "job");
  fs::create_directory(parent.Join("lockstep-job-2"));  // no run has it
  for (int run = 0; run < 12; ++run) {
    ASSERT_THAT(LogDirectory::Open("", parent.path(), "job"), IsOk());
  }

  std::vector<int> there;
  for (int n = 1; n < 20; ++n) {
    if (fs::exists(parent.Join(absl::StrCat("lockstep-job-", n)))) {
      there.push_back(n);
    }
  }
  EXPECT_EQ(there, (std::vector<int>{1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
}

TEST(LogDirectoryTest, ANumberThatNoRunCanHaveDoesNotCount) {
  TempDir parent;
  for (const char* number : {"2147483647", "1000000000", "-5"}) {
    fs::create_directory(parent.Join(absl::StrCat("lockstep-job-", number)));
  }

  const auto directory = LogDirectory::Open("", parent.path(), "job");

  ASSERT_THAT(directory, IsOk());
  EXPECT_EQ((*directory)->path(), parent.Join("lockstep-job-1"));
}

// As in /tmp, which all users share.
TEST(LogDirectoryTest, DirectoriesOfOtherUsersDoNotCount) {
  if (geteuid() != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root may give directories away";
  }
  constexpr uid_t kOther = 12'345;
  TempDir parent;
  for (int n = 3; n < 20; ++n) {
    const std::string path = parent.Join(absl::StrCat("lockstep-job-", n));
    fs::create_directory(path);
    ASSERT_EQ(chown(path.c_str(), kOther, kOther), 0);
  }
  const std::string last = parent.Join("lockstep-job-999999999");
  fs::create_directory(last);
  ASSERT_EQ(chown(last.c_str(), kOther, kOther), 0);

  for (const int n : {1, 2, 20}) {
    const auto directory = LogDirectory::Open("", parent.path(), "job");
    ASSERT_THAT(directory, IsOk());
    EXPECT_EQ((*directory)->path(),
              parent.Join(absl::StrCat("lockstep-job-", n)));
  }
  // Those of other users are not among the ten that are kept.
  EXPECT_TRUE(fs::exists(parent.Join("lockstep-job-1")));
}

TEST(LogDirectoryTest, FilesOfAPersonAreNotOverwritten) {
  TempDir parent;
  for (const std::string name : {"cluster.json", "chief.textproto"}) {
    const std::string path = parent.Join("with-" + name);
    fs::create_directory(path);
    std::ofstream(absl::StrCat(path, "/", name)) << "mine";
    EXPECT_THAT(LogDirectory::Open(path, "", "job").status(),
                StatusIs(kInvalid, HasSubstr("its " + name)));
    EXPECT_FALSE(fs::exists(path + "/run.lock"));
  }
  // Those of a run are.
  const std::string path = parent.Join("logs");
  ASSERT_THAT(LogDirectory::Open(path, "", "job"), IsOk());
  std::ofstream(path + "/cluster.json") << "of a run";
  EXPECT_THAT(LogDirectory::Open(path, "", "job"), IsOk());
}

TEST(LogDirectoryTest, DirectoryThatCannotBeMadeIsNamed) {
  TempDir parent;
  std::ofstream(parent.Join("file")) << "x";

  EXPECT_THAT(LogDirectory::Open(parent.Join("file"), "", "job").status(),
              StatusIs(kInvalid, HasSubstr("--log_dir is no directory")));
  EXPECT_THAT(LogDirectory::Open(parent.Join("file/x"), "", "job").status(),
              StatusIs(kInvalid, HasSubstr("Not a directory; name a directory "
                                           "that you may make")));
  // The system refuses to look there: the name is too long, or a link leads to
  // itself.
  const std::string too_long(300, 'x');
  EXPECT_THAT(LogDirectory::Open(parent.Join(too_long), "", "job").status(),
              StatusIs(kInvalid, HasSubstr("--log_dir")));
  fs::create_symlink("loop", parent.Join("loop"));
  EXPECT_THAT(LogDirectory::Open(parent.Join("loop"), "", "job").status(),
              StatusIs(kInvalid, HasSubstr("--log_dir")));
  EXPECT_THAT(LogDirectory::Open("", "/nowhere/at/all", "job").status(),
              StatusIs(kInvalid, HasSubstr("--log_dir")));
}

}  // namespace
}  // namespace lockstep::cli
