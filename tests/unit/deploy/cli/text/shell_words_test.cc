#include "deploy/cli/text/shell_words.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::TempDir;

TEST(ShellWordTest, OnlyWhatAShellWouldCutIsQuoted) {
  EXPECT_EQ(ShellWord("/tmp/lockstep-job-1"), "/tmp/lockstep-job-1");
  EXPECT_EQ(ShellWord("/tmp/my logs"), "'/tmp/my logs'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(CallOfTest, TheNameIsEnoughWhereThePathFindsTheProgram) {
  TempDir directory;
  const std::string program = directory.Join("lockstep");
  std::ofstream(program) << "";
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  std::filesystem::create_directory(directory.Join("bin"));
  std::filesystem::create_symlink(program, directory.Join("bin/lockstep"));

  EXPECT_EQ(CallOf(program, "/nowhere:" + directory.path()), "lockstep");
  EXPECT_EQ(CallOf(program, directory.Join("bin")), "lockstep");
  EXPECT_EQ(CallOf(program, "/nowhere::."), program);
  EXPECT_EQ(CallOf(program, ""), program);
}

TEST(CallOfTest, AnotherProgramOfThatNameIsNotMeant) {
  TempDir directory;
  std::filesystem::create_directory(directory.Join("other"));
  for (const char* name : {"lockstep", "other/lockstep"}) {
    std::ofstream(directory.Join(name)) << "";
    ASSERT_EQ(chmod(directory.Join(name).c_str(), 0755), 0);
  }

  EXPECT_EQ(CallOf(directory.Join("lockstep"),
                   directory.Join("other") + ":" + directory.path()),
            directory.Join("lockstep"));
}

}  // namespace
}  // namespace lockstep::cli
