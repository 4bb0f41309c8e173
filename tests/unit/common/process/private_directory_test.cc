#include "common/process/private_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PrivateDirectoryTest : public ::testing::Test {
 protected:
  const testing::TempDir parent_;
  const std::string path_ = parent_.Join("state");
};

TEST_F(PrivateDirectoryTest, OneThatIsMissingIsMadeForThisUserAlone) {
  EXPECT_THAT(PrivateDirectory::Open(path_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));

  const auto made = PrivateDirectory::OpenOrMake(path_);

  ASSERT_OK(made);
  struct stat info;
  ASSERT_EQ(fstat(made->fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_OK(made->CheckWritable());
  EXPECT_OK(PrivateDirectory::Open(path_ + "/"));
}

TEST_F(PrivateDirectoryTest, OneThatOthersHaveRightsToIsRefused) {
  ASSERT_OK(PrivateDirectory::OpenOrMake(path_));
  for (const mode_t mode : {0777, 0701, 0710, 01777, 0750}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);

    EXPECT_THAT(PrivateDirectory::OpenOrMake(path_),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("chmod 700 " + path_)))
        << std::oct << mode;
  }

  ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
  EXPECT_OK(PrivateDirectory::OpenOrMake(path_));
}

TEST_F(PrivateDirectoryTest, OneOfAnotherUserIsRefusedByRootToo) {
  if (geteuid() != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root can give directories away";
  }
  ASSERT_OK(PrivateDirectory::OpenOrMake(path_));
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown(path_.c_str(), kNobody, kNobody), 0);

  EXPECT_THAT(PrivateDirectory::OpenOrMake(path_),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("belongs to user 65534"),
                             HasSubstr("this is user 0"))));
}

TEST_F(PrivateDirectoryTest, LinkIsRefusedHoweverItIsNamed) {
  const std::string link = parent_.Join("link");
  ASSERT_OK(PrivateDirectory::OpenOrMake(path_));
  std::filesystem::create_directory_symlink(path_, link);

  for (const char* end : {"", "/", "//"}) {
    EXPECT_THAT(
        PrivateDirectory::OpenOrMake(link + end),
        StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("is a link")));
  }
}

TEST_F(PrivateDirectoryTest, FileIsNoDirectory) {
  std::ofstream(path_) << "x";

  EXPECT_THAT(
      PrivateDirectory::OpenOrMake(path_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no directory")));
}

TEST_F(PrivateDirectoryTest, OneThatCannotBeMadeIsNamed) {
  const std::string deep = parent_.Join("missing/state");

  EXPECT_THAT(PrivateDirectory::OpenOrMake(deep),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(deep)));
}

TEST_F(PrivateDirectoryTest, WhatIsOpenIsKeptWhateverBecomesOfItsPath) {
  const auto kept = PrivateDirectory::OpenOrMake(path_);
  ASSERT_OK(kept);
  std::filesystem::rename(path_, parent_.Join("elsewhere"));
  std::filesystem::create_directory(path_);

  const int fd = openat(kept->fd(), "file", O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  close(fd);

  EXPECT_TRUE(std::filesystem::exists(parent_.Join("elsewhere/file")));
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

}  // namespace
}  // namespace lockstep
