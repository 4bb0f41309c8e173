#include "server/state/file/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSize = 100000;

class MappedFileTest : public ::testing::Test {
 protected:
  // Makes a file that starts with `text` and lets go of it.
  void MakeFile(absl::string_view text) {
    auto file = MappedFile::Create(path_, kSize);
    ASSERT_OK(file);
    std::memcpy((*file)->bytes().data(), text.data(), text.size());
    ASSERT_OK((*file)->Publish());
  }
  bool Exists(const std::string& path) {
    return std::filesystem::exists(std::filesystem::symlink_status(path));
  }

  const testing::TempDir directory_;
  const std::string path_ = directory_.Join("state");
  const std::string temporary_ = path_ + ".new";
};

// It would be killed when it fills the memory.
TEST_F(MappedFileTest, MoreMemoryThanTheProcessMayUseIsRefused) {
  constexpr uint64_t kTooMuch = uint64_t{1} << 50;
  const auto refused = StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("spread the variables"));
  EXPECT_THAT(MappedFile::InOwnMemory(kTooMuch), refused);
  const std::string in_memory =
      absl::StrCat("/dev/shm/lockstep_mapped_file_test_", getpid());
  ASSERT_EQ(mkdir(in_memory.c_str(), 0700), 0);
  EXPECT_THAT(MappedFile::Create(in_memory + "/state", kTooMuch), refused);
  EXPECT_EQ(rmdir(in_memory.c_str()), 0) << "it is not empty";
}

TEST_F(MappedFileTest, NewFileIsZeroAndPrivate) {
  auto file = MappedFile::Create(path_, kSize);
  ASSERT_OK(file);
  ASSERT_OK((*file)->Publish());

  EXPECT_EQ((*file)->bytes().size(), kSize);
  EXPECT_THAT((*file)->bytes(), Each(std::byte{0}));
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_GE(static_cast<uint64_t>(info.st_blocks) * 512, kSize);
}

TEST_F(MappedFileTest, ContentOutlivesTheObject) {
  MakeFile("lockstep");

  auto file = MappedFile::Open(path_, kSize);

  ASSERT_OK(file);
  EXPECT_EQ(std::memcmp((*file)->bytes().data(), "lockstep", 8), 0);
}

TEST_F(MappedFileTest, UnpublishedFileVanishes) {
  {
    auto file = MappedFile::Create(path_, kSize);
    ASSERT_OK(file);
    EXPECT_FALSE(Exists(path_));
    EXPECT_TRUE(Exists(temporary_));
  }

  EXPECT_FALSE(Exists(path_));
  EXPECT_FALSE(Exists(temporary_));
}

TEST_F(MappedFileTest, RemainderOfAKilledProcessIsReplaced) {
  std::ofstream(temporary_) << "half a file";
  ASSERT_EQ(chmod(temporary_.c_str(), 0600), 0);

  auto file = MappedFile::Create(path_, kSize);

  ASSERT_OK(file);
  EXPECT_THAT((*file)->bytes(), Each(std::byte{0}));
}

TEST_F(MappedFileTest, RemainderOfAKilledProcessGoesWithTheFile) {
  for (const bool published : {false, true}) {
    if (published) MakeFile("lockstep");
    std::ofstream(temporary_) << "half a file";

    EXPECT_OK(MappedFile::Remove(path_));

    EXPECT_FALSE(Exists(temporary_)) << published;
    EXPECT_FALSE(Exists(path_)) << published;
  }
}

TEST_F(MappedFileTest, FileThatIsBeingMadeIsNotRemoved) {
  auto file = MappedFile::Create(path_, kSize);
  ASSERT_OK(file);

  EXPECT_OK(MappedFile::Remove(path_));

  EXPECT_TRUE(Exists(temporary_));
  EXPECT_OK((*file)->Publish());
}

// A process that was killed inside Publish() leaves both names.
TEST_F(MappedFileTest, OpenedFileHasOneName) {
  MakeFile("lockstep");
  std::filesystem::create_hard_link(path_, temporary_);
  auto file = MappedFile::Open(path_, kSize);
  ASSERT_OK(file);
  EXPECT_FALSE(Exists(temporary_));

  // The next file is another one.
  ASSERT_OK(MappedFile::Remove(path_));
  ASSERT_OK(MappedFile::Create(path_, kSize));
  EXPECT_EQ(std::memcmp((*file)->bytes().data(), "lockstep", 8), 0);
}

// Returns how much of the mapping at `address` is in memory.
uint64_t ResidentBytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<uintptr_t>(address) << "-";
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(begin.str())) {
  }
  uint64_t kibibytes = 0;
  while (maps >> line) {
    if (line == "Rss:" && maps >> kibibytes) break;
  }
  return kibibytes << 10;
}

TEST_F(MappedFileTest, OpenedFileIsReadWhenItIsLoaded) {
  constexpr uint64_t kLarge = uint64_t{4} << 20;
  {
    auto file = MappedFile::Create(path_, kLarge);
    ASSERT_OK(file);
    ASSERT_OK((*file)->Publish());
  }
  auto file = MappedFile::Open(path_, kLarge);
  ASSERT_OK(file);
  const absl::Span<std::byte> bytes = (*file)->bytes();
  EXPECT_LT(ResidentBytes(bytes.data()), kLarge / 2);
  if (madvise(bytes.data(), 1, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: this kernel loads no ranges";
  }

  (*file)->Load();

  EXPECT_EQ(ResidentBytes(bytes.data()), kLarge);
}

TEST_F(MappedFileTest, ExistingFileIsNotReplaced) {
  MakeFile("lockstep");

  EXPECT_THAT(MappedFile::Create(path_, kSize),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path_)));

  EXPECT_FALSE(Exists(temporary_));
  auto file = MappedFile::Open(path_, kSize);
  ASSERT_OK(file);
  EXPECT_EQ(std::memcmp((*file)->bytes().data(), "lockstep", 8), 0);
}

TEST_F(MappedFileTest, TwoThatMakeTheSameFileDoNotMeet) {
  auto first = MappedFile::Create(path_, kSize);
  ASSERT_OK(first);

  EXPECT_THAT(MappedFile::Create(path_, kSize),
              StatusIs(absl::StatusCode::kUnavailable));

  EXPECT_OK((*first)->Publish());
}

TEST_F(MappedFileTest, PublishNeverReplacesAnotherFile) {
  auto file = MappedFile::Create(path_, kSize);
  ASSERT_OK(file);
  std::ofstream(path_) << "another";

  EXPECT_THAT((*file)->Publish(), StatusIs(absl::StatusCode::kAlreadyExists));

  EXPECT_EQ(std::filesystem::file_size(path_), 7u);
}

TEST_F(MappedFileTest, FileInUseCannotBeOpened) {
  auto file = MappedFile::Create(path_, kSize);
  ASSERT_OK(file);
  ASSERT_OK((*file)->Publish());

  EXPECT_THAT(MappedFile::Open(path_, kSize),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));

  file->reset();
  EXPECT_OK(MappedFile::Open(path_, kSize));
}

TEST_F(MappedFileTest, MoreThanTheFileSystemHasIsRefusedAtOnce) {
  const std::filesystem::space_info room =
      std::filesystem::space(directory_.path());

  EXPECT_THAT(
      MappedFile::Create(path_, room.capacity + (uint64_t{1} << 40)),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("are free")));

  EXPECT_FALSE(Exists(temporary_));
}

TEST_F(MappedFileTest, MissingFileIsNotFound) {
  EXPECT_THAT(MappedFile::Open(path_, kSize),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
}

TEST_F(MappedFileTest, MissingDirectoryIsNotFound) {
  EXPECT_THAT(MappedFile::Create(directory_.Join("no/state"), kSize),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no: ")));
}

TEST_F(MappedFileTest, ShortFileIsDataLoss) {
  MakeFile("lockstep");
  std::filesystem::resize_file(path_, 10);

  EXPECT_THAT(MappedFile::Open(path_, kSize),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("10 bytes")));
  std::filesystem::resize_file(path_, 0);
  EXPECT_THAT(MappedFile::Open(path_, 0),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(MappedFileTest, FileThatOthersCanOpenIsNotTrusted) {
  MakeFile("lockstep");
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);

  EXPECT_THAT(MappedFile::Open(path_, kSize),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       ::testing::AllOf(HasSubstr("with mode 0640"),
                                        HasSubstr("0600"))));
}

TEST_F(MappedFileTest, LinksAndDirectoriesAreRefused) {
  const std::string target = directory_.Join("target");
  std::ofstream(target) << "victim";
  // It is as private as a state file.
  ASSERT_EQ(chmod(target.c_str(), 0600), 0);
  const auto refused =
      StatusIs(absl::StatusCode::kPermissionDenied,
               ::testing::AllOf(HasSubstr("is a link or directory"),
                                HasSubstr("another --state_dir")));

  std::filesystem::create_symlink(target, path_);
  EXPECT_THAT(MappedFile::Open(path_, 1), refused);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_THAT(MappedFile::Open(path_, 1), refused);

  // Nothing but the link of the temporary name stands in the way.
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(target, temporary_);
  EXPECT_FALSE(MappedFile::Create(path_, kSize).ok());
  EXPECT_EQ(std::filesystem::file_size(target), 6u);
  EXPECT_FALSE(Exists(path_));
}

TEST_F(MappedFileTest, PipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);

  EXPECT_THAT(MappedFile::Open(path_, 1),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace lockstep::server
