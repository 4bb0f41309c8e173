#include "common/checkpoint/files/trial_directory.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

TEST(TrialDirectoryTest, DirectoriesThatItMadeAreRemoved) {
  const ScratchDirectory scratch;
  {
    const auto trial = TrialDirectory::Make(scratch / "a/b/");
    ASSERT_OK(trial);
    EXPECT_TRUE(std::filesystem::is_directory(scratch / "a/b"));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "a"));
}

TEST(TrialDirectoryTest, DirectoriesThatWereThereStay) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch / "a");

  ASSERT_OK(TrialDirectory::Make(scratch / "a"));
  ASSERT_OK(TrialDirectory::Make(scratch / "a/b"));

  EXPECT_TRUE(std::filesystem::is_empty(scratch / "a"));
}

TEST(TrialDirectoryTest, DirectoriesWithSomethingInThemStay) {
  const ScratchDirectory scratch;
  {
    const auto trial = TrialDirectory::Make(scratch / "a/b/c");
    ASSERT_OK(trial);
    WriteText(scratch / "a/b/f", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "a/b/c"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "a/b/f"));
}

TEST(TrialDirectoryTest, ADirectoryThatCannotBeMadeLeavesNothing) {
  const ScratchDirectory scratch;
  WriteText(scratch / "f", "x");

  EXPECT_FALSE(TrialDirectory::Make(scratch / "f/a").ok());

  EXPECT_TRUE(std::filesystem::is_regular_file(scratch / "f"));
}

}  // namespace
}  // namespace lockstep
