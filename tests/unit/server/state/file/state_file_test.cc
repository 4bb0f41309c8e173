#include "server/state/file/state_file.h"

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const StateHeader kHeader = {"mnist-17", 2, 0xfeedface, 50000};

StepRecord RecordAt(int64_t step) {
  StepRecord record;
  record.committed_step = step;
  return record;
}

class StateFileTest : public ::testing::Test {
 protected:
  void Make() {
    ASSERT_OK(StateFile::Create(directory_, kHeader, RecordAt(7)));
  }
  // Changes one byte of the file while no process maps it.
  void Damage(size_t offset) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 0x20);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
  absl::Status OpenStatus(const StateHeader& header) {
    return StateFile::Open(directory_, header).status();
  }

  const testing::TempDir temp_dir_;
  const std::string directory_ = temp_dir_.Join("states");
  const std::string path_ = directory_ + "/mnist-17.ps-2.state";
};

TEST_F(StateFileTest, PathNamesJobAndTask) {
  EXPECT_EQ(StateFile::Path("/dev/shm/lockstep", kHeader),
            "/dev/shm/lockstep/mnist-17.ps-2.state");
}

TEST_F(StateFileTest, RecordAndTensorsAreFoundAgain) {
  {
    auto file = StateFile::Create(directory_, kHeader, RecordAt(7));
    ASSERT_OK(file);
    EXPECT_EQ((*file)->path(), path_);
    (*file)->bytes().back() = std::byte{42};
    (*file)->WriteRecord(RecordAt(8));
    EXPECT_EQ((*file)->record(), RecordAt(8));
  }

  auto file = StateFile::Open(directory_, kHeader);

  ASSERT_OK(file);
  EXPECT_EQ((*file)->record(), RecordAt(8));
  EXPECT_EQ((*file)->bytes().size(), kHeader.file_size);
  EXPECT_EQ((*file)->bytes().back(), std::byte{42});
}

TEST_F(StateFileTest, DirectoryIsMadePrivate) {
  Make();

  struct stat info;
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(StateFileTest, DirectoryThatOthersCanEnterIsNotUsed) {
  Make();
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  const auto refused = StatusIs(absl::StatusCode::kPermissionDenied,
                                HasSubstr("chmod 700 " + directory_));
  StateHeader other = kHeader;
  other.task_index = 3;

  EXPECT_THAT(StateFile::CheckDirectory(directory_), refused);
  EXPECT_THAT(StateFile::Create(directory_, other, RecordAt(7)), refused);
  EXPECT_THAT(StateFile::Open(directory_, kHeader), refused);
  EXPECT_THAT(StateFile::Peek(directory_, kHeader), refused);
  EXPECT_THAT(StateFile::NoteEpoch(directory_, kHeader, 9), refused);
  EXPECT_THAT(StateFile::Discard(directory_, kHeader), refused);

  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  EXPECT_THAT(StateFile::Peek(directory_, kHeader), IsOkAndHolds(RecordAt(7)));
}

TEST_F(StateFileTest, DirectoryIsCheckedBeforeThereIsAnythingToKeep) {
  EXPECT_OK(StateFile::CheckDirectory(""));
  EXPECT_OK(StateFile::CheckDirectory(directory_));
  EXPECT_TRUE(std::filesystem::is_directory(directory_));

  EXPECT_THAT(
      StateFile::CheckDirectory(temp_dir_.Join("missing/states")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("--state_dir: ")));
  // A directory in which not even root can write.
  EXPECT_FALSE(StateFile::CheckDirectory("/proc/lockstep").ok());
}

TEST_F(StateFileTest, RecordGoesOnAfterReopening) {
  Make();
  {
    auto file = StateFile::Open(directory_, kHeader);
    ASSERT_OK(file);
    (*file)->WriteRecord(RecordAt(8));
    (*file)->WriteRecord(RecordAt(9));
  }

  auto file = StateFile::Open(directory_, kHeader);

  ASSERT_OK(file);
  EXPECT_EQ((*file)->record(), RecordAt(9));
}

TEST_F(StateFileTest, DamagedNewestRecordFallsBack) {
  {
    auto file = StateFile::Create(directory_, kHeader, RecordAt(7));
    ASSERT_OK(file);
    (*file)->WriteRecord(RecordAt(8));
  }
  Damage(1024 + StepRecordSlots::kSize / 2 + 24);

  auto file = StateFile::Open(directory_, kHeader);

  ASSERT_OK(file);
  EXPECT_EQ((*file)->record(), RecordAt(7));
}

TEST_F(StateFileTest, WithoutADirectoryNothingOutlivesTheObject) {
  {
    auto file = StateFile::Create("", kHeader, RecordAt(7));
    ASSERT_OK(file);
    EXPECT_EQ((*file)->bytes().size(), kHeader.file_size);
    (*file)->WriteRecord(RecordAt(8));
    EXPECT_EQ((*file)->record(), RecordAt(8));
    EXPECT_OK((*file)->Remove());
  }

  EXPECT_THAT(StateFile::Open("", kHeader),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(StateFile::Peek("", kHeader),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(StateFile::Discard("", kHeader));
}

TEST_F(StateFileTest, NothingThereIsNotFound) {
  EXPECT_THAT(OpenStatus(kHeader), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StateFileTest, SecondCreateIsRefused) {
  Make();

  EXPECT_THAT(StateFile::Create(directory_, kHeader, RecordAt(0)),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(StateFileTest, ForeignFileIsRefusedWithTheReason) {
  Make();
  StateHeader expected = kHeader;
  expected.layout_hash = 1;

  EXPECT_THAT(OpenStatus(expected),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(path_), HasSubstr("layout"))));
}

TEST_F(StateFileTest, RenamedFileOfAnotherTaskIsRefused) {
  Make();
  StateHeader expected = kHeader;
  expected.task_index = 0;
  std::filesystem::rename(path_, StateFile::Path(directory_, expected));

  EXPECT_THAT(OpenStatus(expected),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("ps task 2, not 0")));
}

TEST_F(StateFileTest, DamagedHeaderIsRefused) {
  Make();
  Damage(33);

  EXPECT_THAT(OpenStatus(kHeader),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
}

TEST_F(StateFileTest, OtherVersionIsRefused) {
  Make();
  Damage(8);

  EXPECT_THAT(
      OpenStatus(kHeader),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("version")));
}

TEST_F(StateFileTest, FileOfAnotherLengthIsRefused) {
  Make();
  for (const uint64_t size : {kHeader.file_size - 1, kHeader.file_size + 1}) {
    std::filesystem::resize_file(path_, size);
    EXPECT_THAT(
        OpenStatus(kHeader),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr(absl::StrCat(path_, " has ", size,
                                        " of 50000 bytes; remove it"))));
  }
  std::filesystem::resize_file(path_, 100);
  EXPECT_THAT(OpenStatus(kHeader),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("has 100 bytes, less than 4096; remove it")));
}

TEST_F(StateFileTest, LostRecordIsRefused) {
  Make();
  Damage(1024 + 24);

  EXPECT_THAT(OpenStatus(kHeader),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step record")));
}

TEST_F(StateFileTest, HeaderOutOfRangeIsRefused) {
  const auto expect_refused = [this](const StateHeader& header,
                                     const std::string& reason) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason));
    EXPECT_THAT(StateFile::Create(directory_, header, RecordAt(0)), refused);
    EXPECT_THAT(OpenStatus(header), refused);
  };
  const std::pair<StateHeader, const char*> bad_names[] = {
      {{"../../etc/x", 0, 1, 50000}, "job_id of 11 bytes"},
      {{"job", -1, 1, 50000}, "state file of task -1"}};
  for (const auto& [header, reason] : bad_names) {
    expect_refused(header, reason);
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(reason));
    EXPECT_THAT(StateFile::Discard(directory_, header), refused);
    EXPECT_THAT(StateFile::Peek(directory_, header), refused);
  }
  expect_refused({"job", 0, 1, 4095}, "state file of 4095 bytes");
  expect_refused({"job", 0, 1, uint64_t{1} << 63},
                 "state file of 9223372036854775808 bytes");
  EXPECT_FALSE(std::filesystem::exists(directory_));
  EXPECT_OK(StateFile::Create(directory_, {"job", 0, 1, 4096}, RecordAt(0)));
}

TEST_F(StateFileTest, RemoveLeavesTheMemory) {
  auto file = StateFile::Create(directory_, kHeader, RecordAt(7));
  ASSERT_OK(file);

  EXPECT_OK((*file)->Remove());
  EXPECT_OK((*file)->Remove());

  EXPECT_FALSE(std::filesystem::exists(path_));
  (*file)->bytes().back() = std::byte{1};
  EXPECT_EQ((*file)->record(), RecordAt(7));
}

TEST_F(StateFileTest, PeekReadsTheRecordWhateverTheLayout) {
  Make();
  StateHeader other_layout = kHeader;
  other_layout.layout_hash += 1;
  other_layout.file_size = 0;

  EXPECT_THAT(StateFile::Peek(directory_, other_layout),
              IsOkAndHolds(RecordAt(7)));

  Damage(0);
  EXPECT_THAT(StateFile::Peek(directory_, other_layout),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)));
  EXPECT_OK(StateFile::Discard(directory_, other_layout));
  EXPECT_THAT(StateFile::Peek(directory_, other_layout),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StateFileTest, NewerEpochIsNotedWhateverTheLayout) {
  EXPECT_THAT(StateFile::NoteEpoch(directory_, kHeader, 5),
              StatusIs(absl::StatusCode::kNotFound));
  Make();
  StateHeader other_layout = kHeader;
  other_layout.file_size = 0;
  StepRecord expected = RecordAt(7);
  expected.epoch += 5;

  EXPECT_OK(StateFile::NoteEpoch(directory_, other_layout, expected.epoch));
  EXPECT_OK(StateFile::NoteEpoch(directory_, other_layout, 1));

  EXPECT_THAT(StateFile::Peek(directory_, kHeader), IsOkAndHolds(expected));
}

TEST_F(StateFileTest, DiscardTakesWhateverIsThere) {
  Make();
  Damage(0);

  EXPECT_OK(StateFile::Discard(directory_, kHeader));
  EXPECT_OK(StateFile::Discard(directory_, kHeader));

  EXPECT_OK(StateFile::Create(directory_, kHeader, RecordAt(0)));
}

TEST_F(StateFileTest, DirectoryGoesOnceNothingIsLeftInIt) {
  const std::string& directory = directory_;
  StateHeader other = kHeader;
  ++other.task_index;
  auto one = StateFile::Create(directory, kHeader, RecordAt(0));
  auto another = StateFile::Create(directory, other, RecordAt(0));
  ASSERT_OK(one);
  ASSERT_OK(another);

  ASSERT_OK((*one)->Remove());
  StateFile::RemoveIfEmpty(directory);
  EXPECT_TRUE(std::filesystem::exists(directory));
  ASSERT_OK((*another)->Remove());
  StateFile::RemoveIfEmpty(directory);
  EXPECT_FALSE(std::filesystem::exists(directory));
  StateFile::RemoveIfEmpty(directory);  // does no harm
}

}  // namespace
}  // namespace lockstep::server
