#include "common/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::Duration kShort = absl::Milliseconds(50);

class InputFileTest : public ::testing::Test {
 protected:
  // Makes a named pipe.
  std::string Pipe() const {
    const std::string path = directory_.Join("pipe");
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  testing::TempDir directory_;
};

TEST_F(InputFileTest, FileIsReadUpToTheLimit) {
  const std::string path = directory_.Join("file");
  const std::string text(200000, 'x');
  std::ofstream(path) << text;

  EXPECT_THAT(ReadInputFile(path, 1 << 20), IsOkAndHolds(text));
  EXPECT_THAT(ReadInputFile(path, 100000),
              IsOkAndHolds(std::string(100000, 'x')));
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THAT(ReadInputFile(path, 5), IsOkAndHolds(""));
  EXPECT_THAT(ReadInputFile("/dev/zero", 5), IsOkAndHolds(std::string(5, 0)));
}

TEST_F(InputFileTest, WhatCannotBeReadIsRefused) {
  EXPECT_THAT(ReadInputFile(directory_.Join("none"), 5),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("No such file")));
  EXPECT_THAT(ReadInputFile(directory_.Join(""), 5),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("directory")));
}

// As of `<(command)` in a shell, which writes when it has something to say.
TEST_F(InputFileTest, PipeIsReadToItsEnd) {
  const std::string path = Pipe();
  std::thread writer([&path] {
    std::ofstream file(path);
    file << "one" << std::flush;
    file << "two";
  });

  EXPECT_THAT(ReadInputFile(path, 1 << 20), IsOkAndHolds("onetwo"));
  writer.join();
}

TEST_F(InputFileTest, PipeWithoutAWriterIsGivenUp) {
  EXPECT_THAT(ReadInputFile(Pipe(), 5, kShort),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has not ended within 50ms")));
}

TEST_F(InputFileTest, PipeThatStaysOpenIsGivenUp) {
  const std::string path = Pipe();
  const int writer = open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(writer, 0);
  ASSERT_EQ(write(writer, "one", 3), 3);

  EXPECT_THAT(ReadInputFile(path, 5, kShort),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has not ended within 50ms")));
  close(writer);
}

}  // namespace
}  // namespace lockstep
