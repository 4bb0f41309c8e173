#include "deploy/cli/tasks/own_directory.h"

#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace lockstep::cli {
namespace {

TEST(OwnDirectoryTest, HoldsTheRunningProgram) {
  EXPECT_EQ(std::filesystem::path(OwnProgram()).filename(), "cli_tasks_test");
  EXPECT_TRUE(std::filesystem::equivalent(
      std::filesystem::path(OwnDirectory()) / "cli_tasks_test",
      "/proc/self/exe"));
}

}  // namespace
}  // namespace lockstep::cli
