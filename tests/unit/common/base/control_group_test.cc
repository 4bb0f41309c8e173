#include "common/base/control_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::Eq;
using ::testing::Optional;

// A process whose groups are `groups`, below a mount of its own.
class ControlGroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = mount_.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::optional<uint64_t> Limit(const std::string& groups,
                                const GroupLimit& limit = kMemoryOfGroup) {
    Write("groups", groups);
    return LimitOfGroups(limit, mount_.path() + "/groups", mount_.path());
  }

  TempDir mount_;
};

TEST_F(ControlGroupTest, ReadsTheLimitOfTheUnifiedHierarchy) {
  Write("system.slice/worker.service/memory.max", "1048576\n");
  EXPECT_THAT(Limit("0::/system.slice/worker.service\n"), Optional(1048576u));
}

TEST_F(ControlGroupTest, TheSmallestLimitAboveCounts) {
  Write("pods/pod/container/memory.max", "3000\n");
  Write("pods/pod/memory.max", "2000\n");
  Write("pods/memory.max", "max\n");
  EXPECT_THAT(Limit("0::/pods/pod/container\n"), Optional(2000u));
}

TEST_F(ControlGroupTest, AContainerSeesItsGroupAsTheRoot) {
  Write("memory.max", "4096\n");
  EXPECT_THAT(Limit("0::/\n"), Optional(4096u));
  EXPECT_THAT(Limit("0::/path/of/the/host\n"), Optional(4096u));
}

TEST_F(ControlGroupTest, ReadsTheHierarchyOfAController) {
  Write("memory/job/memory.limit_in_bytes", "5000\n");
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(Limit("5:cpu,memory:/job\n4:pids:/job\n0::/\n"), Optional(5000u));
}

TEST_F(ControlGroupTest, WithoutLimitsThereIsNone) {
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("memory.max", "max\n");
  EXPECT_THAT(Limit("5:memory:/\n0::/\n"), Eq(std::nullopt));
  EXPECT_THAT(Limit(""), Eq(std::nullopt));
  EXPECT_THAT(Limit("no groups\n0::\n"), Eq(std::nullopt));
}

TEST_F(ControlGroupTest, EachVersionLimitsSwapInItsOwnWay) {
  Write("memory.swap.max", "6000\n");
  Write("memory/memory.memsw.limit_in_bytes", "7000\n");
  const std::string both = "4:memory:/\n0::/\n";
  EXPECT_THAT(Limit(both, kSwapOfGroup), Optional(6000u));
  EXPECT_THAT(Limit(both, kMemoryAndSwapOfGroup), Optional(7000u));
}

TEST_F(ControlGroupTest, AnotherControllersLimitIsNotMemory) {
  Write("pids/memory.limit_in_bytes", "7\n");
  Write("pids.max", "8\n");
  EXPECT_THAT(Limit("4:pids:/\n0::/\n"), Eq(std::nullopt));
}

}  // namespace
}  // namespace lockstep
