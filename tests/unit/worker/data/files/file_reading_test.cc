#include "worker/data/files/file_reading.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"
#include "worker/data/files/data_file.h"

namespace lockstep::worker {
namespace {

TEST(FileReadingTest, SaysWhichFileHowFarAndHowLongYet) {
  testing::ManualClock clock;
  FileReading reading(clock);
  EXPECT_EQ(reading.Text(), "");
  {
    const FileReading::Scope scope(reading);
    EXPECT_EQ(reading.Text(), "");
    FileReading::Begin("reads", "/data/train.npy", 1000);
    EXPECT_EQ(reading.Text(), "reads train.npy, 0 %");
    clock.Advance(absl::Seconds(8));
    FileReading::Advance(400);
    EXPECT_EQ(reading.Text(), "reads train.npy, 40 %, 12 s to go");
    FileReading::Begin("unpacks", "/data/labels.gz", 10);
    EXPECT_EQ(reading.Text(), "unpacks labels.gz, 0 %");
  }
  EXPECT_EQ(reading.Text(), "");
}

TEST(FileReadingTest, OutsideOfAScopeNothingIsTold) {
  testing::ManualClock clock;
  FileReading reading(clock);
  FileReading::Begin("reads", "train.npy", 1000);
  FileReading::Advance(1);
  EXPECT_EQ(reading.Text(), "");
}

TEST(FileReadingTest, ScopesNest) {
  testing::ManualClock clock;
  FileReading outer(clock);
  FileReading inner(clock);
  const FileReading::Scope scope(outer);
  {
    const FileReading::Scope nested(inner);
    FileReading::Begin("reads", "a", 1);
    EXPECT_EQ(outer.Text(), "");
    EXPECT_EQ(inner.Text(), "reads a, 0 %");
  }
  FileReading::Begin("reads", "b", 1);
  EXPECT_EQ(outer.Text(), "reads b, 0 %");
}

TEST(FileReadingTest, FilesOfDataAreTold) {
  const testing::TempDir dir;
  const std::vector<uint8_t> bytes(100'000, 7);
  testing::WriteFile(dir.Join("plain"), bytes);
  testing::WriteFile(dir.Join("packed"), testing::Gzip(bytes));
  testing::ManualClock clock;
  FileReading reading(clock);
  const FileReading::Scope scope(reading);

  ASSERT_OK(ReadDataFile(dir.Join("plain")));
  EXPECT_EQ(reading.Text(), "reads plain, 100 %");

  ASSERT_OK(ReadDataFile(dir.Join("packed")));
  EXPECT_EQ(reading.Text(), "unpacks packed, 100 %");
}

}  // namespace
}  // namespace lockstep::worker
