#include "common/memory/usable_memory.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

TEST(UsableMemoryTest, IsAtMostTheHostsAndAtLeastWhatThisProcessHas) {
  const UsableMemory usable = UsableMemory::OfThisProcess();
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

  // Hosts have no more swap than that.
  EXPECT_THAT(usable.bytes, AllOf(Ge(page), Le(64 * pages * page)));
  EXPECT_THAT(usable.source, HasSubstr(absl::StrCat(usable.bytes, " bytes")));
}

TEST(UsableMemoryTest, IsTheHostsWhereNoLimitIsLower) {
  EXPECT_EQ(UsableMemory::Of(1000, 500, {}).bytes, 1500u);
  const UsableMemory usable =
      UsableMemory::Of(1000, 500, {.memory = 2000, .swap = 600});
  EXPECT_EQ(usable.bytes, 1500u);
  EXPECT_THAT(usable.source, HasSubstr("this host has 1500 bytes"));
}

// The kernel swaps before it kills.
TEST(UsableMemoryTest, AGroupMayUseTheSwapThatItsLimitsLeaveIt) {
  EXPECT_EQ(UsableMemory::Of(1000, 500, {.memory = 300}).bytes, 800u);
  const UsableMemory usable =
      UsableMemory::Of(1000, 500, {.memory = 300, .swap = 0});
  EXPECT_EQ(usable.bytes, 300u);
  EXPECT_THAT(usable.source, HasSubstr("may use 300 bytes"));
}

TEST(UsableMemoryTest, ALimitOfTheSumCountsBesides) {
  EXPECT_EQ(UsableMemory::Of(1000, 500, {.memory = 300, .memory_and_swap = 400})
                .bytes,
            400u);
}

}  // namespace
}  // namespace lockstep
