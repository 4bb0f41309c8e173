#include "worker/data/files/array_file.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"
#include "tests/unit/worker/data/files/npy_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::Gzip;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::NpyBytes;
using ::lockstep::testing::NpyText;
using ::lockstep::testing::NpzBytes;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ArrayFileTest : public ::testing::Test {
 protected:
  std::string Write(const Bytes& bytes) {
    WriteFile(dir_.Join("data"), bytes);
    return dir_.Join("data");
  }

  testing::TempDir dir_;
};

TEST_F(ArrayFileTest, PlainFileIsRead) {
  const auto array = ReadArrayFile(Write(IdxBytes({1, 2}, {3, 4})));

  ASSERT_OK(array);
  EXPECT_THAT(array->dimensions, ElementsAre(1, 2));
  EXPECT_THAT(array->bytes, ElementsAre(3, 4));
}

TEST_F(ArrayFileTest, GzippedFileIsToldByItsBytesNotItsName) {
  const auto array = ReadArrayFile(Write(Gzip(IdxBytes({1, 2}, {3, 4}))));

  ASSERT_OK(array);
  EXPECT_THAT(array->dimensions, ElementsAre(1, 2));
  EXPECT_THAT(array->bytes, ElementsAre(3, 4));
}

TEST_F(ArrayFileTest, NumPyFilesAreReadPlainGzippedAndFromAnArchive) {
  const Bytes npy = NpyBytes(NpyText("<i2", "(1, 2)"), {3, 0, 4, 0});
  for (const Bytes& file : {npy, Gzip(npy), NpzBytes({{"x.npy", npy}})}) {
    const auto array = ReadArrayFile(Write(file));

    ASSERT_OK(array);
    EXPECT_EQ(array->type, NumberType::kInt16);
    EXPECT_THAT(array->dimensions, ElementsAre(1, 2));
    EXPECT_THAT(array->bytes, ElementsAre(3, 0, 4, 0));
  }
}

TEST_F(ArrayFileTest, ArrayOfAnArchiveIsNamedBehindItsPath) {
  const std::string path = dir_.Join("data.npz");
  WriteFile(path, NpzBytes({{"x.npy", NpyBytes(NpyText("|u1", "(1,)"), {3})},
                            {"y.npy", NpyBytes(NpyText("|u1", "(1,)"), {4})}}));

  const auto array = ReadArrayFile(path + ":y");

  ASSERT_OK(array);
  EXPECT_THAT(array->bytes, ElementsAre(4));
  EXPECT_THAT(ReadArrayFile(path),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(StartsWith(path), HasSubstr("x, y"))));
}

TEST_F(ArrayFileTest, OnlyAnArchiveHasANameBehindItsPath) {
  EXPECT_EQ(SplitArrayPath("/a/x.npz:y").file, "/a/x.npz");
  EXPECT_EQ(SplitArrayPath("/a/x.npz:y").array, "y");
  EXPECT_EQ(SplitArrayPath("/a/x:y.npy").file, "/a/x:y.npy");
  EXPECT_EQ(SplitArrayPath("/a/x.npz").file, "/a/x.npz");
  EXPECT_EQ(SplitArrayPath("/a/x.npz").array, "");
}

TEST_F(ArrayFileTest, MissingFileIsNamed) {
  EXPECT_THAT(ReadArrayFile("/nowhere/train.gz"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(StartsWith("/nowhere/train.gz: "),
                             Not(HasSubstr("install")))));
}

TEST_F(ArrayFileTest, MissingFileOfAKnownSetNamesThePackage) {
  EXPECT_THAT(
      ReadArrayFile("/usr/share/datasets/fashion-mnist/no-such-file.gz"),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("install the package dataset-fashion-mnist")));
}

TEST_F(ArrayFileTest, DirectoryIsRefused) {
  EXPECT_THAT(ReadArrayFile(dir_.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
}

TEST_F(ArrayFileTest, PipeIsRefusedWithoutWaiting) {
  const std::string pipe = dir_.Join("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);

  EXPECT_THAT(ReadArrayFile(pipe), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("not a regular file")));
}

TEST_F(ArrayFileTest, EmptyFileIsRefused) {
  EXPECT_THAT(ReadArrayFile(Write({})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ArrayFileTest, FileOfNoKnownKindTellsHowItBegins) {
  // An archive that was cut off within its first four bytes.
  EXPECT_THAT(ReadArrayFile(Write({'P', 'K'})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("neither IDX nor .npy nor .npz"),
                             HasSubstr("0x50 0x4b"))));
}

TEST_F(ArrayFileTest, TruncatedGzipIsNamed) {
  Bytes bytes = Gzip(IdxBytes({1, 2}, {3, 4}));
  bytes.resize(bytes.size() - 5);
  const std::string path = Write(bytes);

  EXPECT_THAT(ReadArrayFile(path),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(StartsWith(path), HasSubstr("truncated"))));
}

TEST_F(ArrayFileTest, WrongSizeTellsFileExpectedAndFound) {
  const std::string path = Write(Gzip(IdxBytes({5}, {3, 4})));

  EXPECT_THAT(ReadArrayFile(path),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(StartsWith(path), HasSubstr("need 5 bytes"),
                             HasSubstr("2 follow"))));
}

TEST_F(ArrayFileTest, FileAboveTheLimitIsRefused) {
  const Bytes bytes = IdxBytes({2}, {3, 4});

  EXPECT_OK(ReadArrayFile(Write(bytes), 10));
  EXPECT_THAT(ReadArrayFile(Write(bytes), 9),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("10 bytes; at most 9"),
                             HasSubstr("give a smaller file"))));
}

TEST_F(ArrayFileTest, GzipThatUnpacksAboveTheLimitIsRefused) {
  const std::string path = Write(Gzip(IdxBytes({100000}, Bytes(100000, 0))));

  EXPECT_THAT(ReadArrayFile(path, 50000),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 50000 bytes")));
}

}  // namespace
}  // namespace lockstep::worker
