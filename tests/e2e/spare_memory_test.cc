#include "common/memory/spare_memory.h"

#include <cstring>
#include <memory>
#include <vector>

#include "common/process/process.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

// Among the tests that no sanitizer runs: it would put its own heap in place of
// glibc's.
TEST(SpareMemoryEndToEndTest, MemoryOfASpikeIsReturned) {
  TuneProcess();
  const size_t before = CurrentHeapUse().resident;
  std::vector<std::unique_ptr<char[]>> spike;
  for (int i = 0; i < 1000; ++i) {
    spike.push_back(std::make_unique<char[]>(kMebibyte));
    std::memset(spike.back().get(), 1, kMebibyte);
  }
  // Above all the others.
  const auto last = std::make_unique<char[]>(kMebibyte);
  spike.clear();
  ASSERT_GT(CurrentHeapUse().resident, before + 800 * kMebibyte);

  ReturnFreeMemory();

  EXPECT_LT(CurrentHeapUse().resident, before + 300 * kMebibyte);
}

}  // namespace
}  // namespace lockstep
