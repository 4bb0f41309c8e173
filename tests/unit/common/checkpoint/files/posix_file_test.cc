#include "common/checkpoint/files/posix_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Limits the files of this process to `bytes`, like a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal_ = signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_;
  sighandler_t signal_;
};

TEST(PosixFileTest, ErrorsThatMayPassAreUnavailable) {
  for (const int error : {ESTALE, EMFILE, ENFILE}) {
    EXPECT_THAT(SystemError(error, "the file"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the file")))
        << error;
  }
  EXPECT_THAT(SystemError(ENOSPC, "the file"),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(SystemError(ENOENT, "the file"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(PosixFileTest, FileIsUnavailableWhileDescriptorsAreLacking) {
  ScratchDirectory scratch;
  WriteText(scratch / "f", "1234");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status opened = PosixFile::OpenForRead(scratch / "f").status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_THAT(opened, StatusIs(absl::StatusCode::kUnavailable));
}

TEST(PosixFileTest, WhatIsWrittenCanBeReadBack) {
  ScratchDirectory scratch;
  auto file = PosixFile::CreateNew(scratch / "f");
  ASSERT_OK(file);

  ASSERT_OK(file->Reserve(10));
  ASSERT_OK(file->WriteAt(7, absl::string_view("end")));
  ASSERT_OK(file->Sync());

  EXPECT_THAT(file->Size(), IsOkAndHolds(10u));
  std::string back(4, '?');
  ASSERT_OK(file->ReadAt(6, absl::MakeSpan(back)));
  EXPECT_EQ(back, std::string("\0end", 4));
}

TEST(PosixFileTest, ExistingFileIsNotCreatedAgain) {
  ScratchDirectory scratch;
  WriteText(scratch / "f", "kept");

  EXPECT_THAT(PosixFile::CreateNew(scratch / "f"),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(scratch / "f"), HasSubstr("exists"))));
  EXPECT_EQ(ReadText(scratch / "f"), "kept");
}

TEST(PosixFileTest, MissingFileIsNotFoundByPathAndReason) {
  ScratchDirectory scratch;

  EXPECT_THAT(
      PosixFile::OpenForRead(scratch / "f"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr(scratch / "f"), HasSubstr("No such file"))));
}

TEST(PosixFileTest, OnlyRegularFilesAreOpened) {
  ScratchDirectory scratch;
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);

  EXPECT_THAT(PosixFile::OpenForRead(scratch.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(PosixFile::OpenForRead(scratch / "pipe"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

TEST(PosixFileTest, ReadingBeyondTheEndIsDataLoss) {
  ScratchDirectory scratch;
  WriteText(scratch / "f", "1234");
  auto file = PosixFile::OpenForRead(scratch / "f");
  ASSERT_OK(file);

  std::string back(3, '?');

  EXPECT_THAT(
      file->ReadAt(2, absl::MakeSpan(back)),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("ends at byte 4"), HasSubstr("1 more"))));
}

TEST(PosixFileTest, FullDiskShowsWhenSpaceIsReserved) {
  ScratchDirectory scratch;
  auto file = PosixFile::CreateNew(scratch / "f");
  ASSERT_OK(file);
  FileSizeLimit limit(1000);

  EXPECT_OK(file->Reserve(1000));
  absl::Status refused = file->Reserve(1001);

  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(scratch / "f"), HasSubstr("reserve 1001 bytes"),
                    HasSubstr("File too large")));
}

TEST(PosixFileTest, WriteThatEndsShortIsAnErrorWithItsReason) {
  ScratchDirectory scratch;
  auto file = PosixFile::CreateNew(scratch / "f");
  ASSERT_OK(file);
  FileSizeLimit limit(10);

  absl::Status refused = file->WriteAt(5, std::string(100, 'x'));

  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("write 95 bytes at byte 10"),
                    HasSubstr("File too large")));
}

TEST(PosixFileTest, FailedWholeFileLeavesNothing) {
  ScratchDirectory scratch;
  FileSizeLimit limit(10);

  const absl::Status written =
      WriteWholeFile(scratch / "f", std::string(11, 'x'));
  EXPECT_THAT(std::string(written.message()), HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "f"));
}

TEST(PosixFileTest, WholeFileComesBack) {
  ScratchDirectory scratch;
  const std::string contents(100'000, 'x');
  ASSERT_OK(WriteWholeFile(scratch / "f", contents));

  EXPECT_THAT(ReadWholeFile(scratch / "f", 100'000), IsOkAndHolds(contents));
  EXPECT_THAT(
      ReadWholeFile(scratch / "f", 99'999),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 99999")));
  EXPECT_THAT(WriteWholeFile(scratch / "f", "y"),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST(PosixFileTest, MovedFileStaysOpen) {
  ScratchDirectory scratch;
  WriteText(scratch / "a", "a");
  WriteText(scratch / "b", "b");
  auto a = PosixFile::OpenForRead(scratch / "a");
  auto b = PosixFile::OpenForRead(scratch / "b");
  ASSERT_OK(a);
  ASSERT_OK(b);

  *a = *std::move(b);

  char byte = '?';
  ASSERT_OK(a->ReadAt(0, absl::MakeSpan(&byte, 1)));
  EXPECT_EQ(byte, 'b');
  EXPECT_EQ(a->path(), scratch / "b");
}

TEST(PosixFileTest, OthersThanUserAndGroupMayNotReadWhatIsMade) {
  ScratchDirectory scratch;
  ASSERT_OK(WriteWholeFile(scratch / "f", "x"));
  ASSERT_OK(MakeDirectories(scratch / "a/b/c"));

  using std::filesystem::perms;
  for (const char* name : {"f", "a", "a/b", "a/b/c"}) {
    const perms mode = std::filesystem::status(scratch / name).permissions();
    EXPECT_EQ(mode & (perms::others_all | perms::group_write), perms::none)
        << name;
  }
}

TEST(PosixFileTest, DirectoriesThatAreThereAreEnough) {
  ScratchDirectory scratch;
  ASSERT_OK(MakeDirectories(scratch / "a/b/"));

  EXPECT_OK(MakeDirectories(scratch / "a/b"));
  EXPECT_OK(MakeDirectories(scratch / "a/b/c/"));
  WriteText(scratch / "f", "x");
  EXPECT_THAT(MakeDirectories(scratch / "f"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(std::string(MakeDirectories(scratch / "f/d").message()),
              HasSubstr("f/d"));
}

TEST(PosixFileTest, DirectoryIsSyncedOrTheReasonGiven) {
  ScratchDirectory scratch;

  EXPECT_OK(SyncDirectory(scratch.path()));
  EXPECT_THAT(SyncDirectory(scratch / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST(PosixFileTest, DirectoryOfAFileSystemThatSyncsNoneIsAsGoodAsSynced) {
  EXPECT_OK(SyncDirectory("/proc"));
}

}  // namespace
}  // namespace lockstep
