#include "worker/data/files/data_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(DataFileTest, PlainAndGzippedFilesHoldTheSameBytes) {
  const testing::TempDir dir;
  testing::WriteFile(dir.Join("plain"), {1, 2, 3});
  testing::WriteFile(dir.Join("packed"), testing::Gzip({1, 2, 3}));
  for (const char* name : {"plain", "packed"}) {
    const auto bytes = ReadDataFile(dir.Join(name));
    ASSERT_OK(bytes);
    EXPECT_THAT(*bytes, ElementsAre(1, 2, 3));
  }
}

TEST(DataFileTest, TextIsTheBytesAndErrorsNameThePath) {
  const testing::TempDir dir;
  testing::WriteFile(dir.Join("packed"), testing::Gzip({'a', 0, 'b'}));
  const auto text = ReadDataText(dir.Join("packed"));
  ASSERT_OK(text);
  EXPECT_EQ(*text, std::string("a\0b", 3));
  EXPECT_THAT(ReadDataText(dir.Join("none")),
              StatusIs(absl::StatusCode::kNotFound,
                       ::testing::StartsWith(dir.Join("none: "))));
}

TEST(DataFileTest, FilesHaveALimit) {
  const testing::TempDir dir;
  testing::WriteFile(dir.Join("plain"), {1, 2, 3});
  EXPECT_THAT(ReadDataFile(dir.Join("plain"), 2),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(DataFileTest, DirectoryOrMissingFileIsRefused) {
  const testing::TempDir dir;
  EXPECT_THAT(ReadDataFile(dir.Join("none")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadDataFile(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep::worker
