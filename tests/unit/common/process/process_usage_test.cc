#include "common/process/process_usage.h"

#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ProcessUsageTest, MemoryAndTimeGrowWithUse) {
  const ProcessUsage before = ReadProcessUsage();
  std::vector<char> memory(size_t{64} << 20, 1);
  ProcessUsage after = ReadProcessUsage();
  EXPECT_GT(after.resident_bytes - before.resident_bytes, 32 << 20);
  EXPECT_GE(after.virtual_bytes, after.resident_bytes);
  while (after.processor_time == before.processor_time) {
    after = ReadProcessUsage();
  }
  EXPECT_GT(after.processor_time, before.processor_time);
  EXPECT_EQ(memory.back(), 1);
}

}  // namespace
}  // namespace lockstep
