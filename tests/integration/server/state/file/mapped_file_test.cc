#include "server/state/file/mapped_file.h"

#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/paused_child.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

constexpr uint64_t kSize = 100000;

// As a data loader of a program that hosts its mirror.
TEST(MappedFileTest, AForkedChildDoesNotHoldTheFile) {
  const testing::TempDir directory;
  const std::string path = directory.Join("state");
  auto file = MappedFile::Create(path, kSize);
  ASSERT_OK(file);
  ASSERT_OK((*file)->Publish());
  const testing::PausedChild child;
  file->reset();

  EXPECT_OK(MappedFile::Open(path, kSize));
}

}  // namespace
}  // namespace lockstep::server
