#include "worker/data/idx_file.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::Gzip;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class IdxFileTest : public ::testing::Test {
 protected:
  std::string Write(const Bytes& bytes) {
    WriteFile(dir_.Join("data"), bytes);
    return dir_.Join("data");
  }

  testing::TempDir dir_;
};

TEST_F(IdxFileTest, PlainFileIsRead) {
  const auto array = ReadIdxFile(Write(IdxBytes({1, 2}, {3, 4})));

  ASSERT_OK(array);
  EXPECT_THAT(array->dimensions, ElementsAre(1, 2));
  EXPECT_THAT(array->values, ElementsAre(3, 4));
}

TEST_F(IdxFileTest, GzippedFileIsToldByItsBytesNotItsName) {
  const auto array = ReadIdxFile(Write(Gzip(IdxBytes({1, 2}, {3, 4}))));

  ASSERT_OK(array);
  EXPECT_THAT(array->dimensions, ElementsAre(1, 2));
  EXPECT_THAT(array->values, ElementsAre(3, 4));
}

TEST_F(IdxFileTest, MissingFileIsNamed) {
  EXPECT_THAT(ReadIdxFile("/nowhere/train.gz"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(StartsWith("/nowhere/train.gz: "),
                             Not(HasSubstr("install")))));
}

TEST_F(IdxFileTest, MissingFileOfAKnownSetNamesThePackage) {
  EXPECT_THAT(ReadIdxFile("/usr/share/datasets/fashion-mnist/no-such-file.gz"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("install the package dataset-fashion-mnist")));
}

TEST_F(IdxFileTest, DirectoryIsRefused) {
  EXPECT_THAT(ReadIdxFile(dir_.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

TEST_F(IdxFileTest, PipeIsRefusedWithoutWaiting) {
  const std::string pipe = dir_.Join("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);

  EXPECT_THAT(ReadIdxFile(pipe), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("not a regular file")));
}

TEST_F(IdxFileTest, EmptyFileIsRefused) {
  EXPECT_THAT(ReadIdxFile(Write({})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(IdxFileTest, TruncatedGzipIsNamed) {
  Bytes bytes = Gzip(IdxBytes({1, 2}, {3, 4}));
  bytes.resize(bytes.size() - 5);
  const std::string path = Write(bytes);

  EXPECT_THAT(ReadIdxFile(path),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(StartsWith(path), HasSubstr("truncated"))));
}

TEST_F(IdxFileTest, WrongSizeTellsFileExpectedAndFound) {
  const std::string path = Write(Gzip(IdxBytes({5}, {3, 4})));

  EXPECT_THAT(ReadIdxFile(path),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(StartsWith(path), HasSubstr("need 5 bytes"),
                             HasSubstr("2 follow"))));
}

TEST_F(IdxFileTest, FileAboveTheLimitIsRefused) {
  const Bytes bytes = IdxBytes({2}, {3, 4});

  EXPECT_OK(ReadIdxFile(Write(bytes), 10));
  EXPECT_THAT(ReadIdxFile(Write(bytes), 9),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("10 bytes; at most 9")));
}

TEST_F(IdxFileTest, GzipThatUnpacksAboveTheLimitIsRefused) {
  const std::string path = Write(Gzip(IdxBytes({100000}, Bytes(100000, 0))));

  EXPECT_THAT(ReadIdxFile(path, 50000),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 50000 bytes")));
}

}  // namespace
}  // namespace lockstep::worker
