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

}  // namespace
}  // namespace lockstep
