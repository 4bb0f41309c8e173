#include "common/observe/process_metrics.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

double ValueOf(const std::string& name) {
  for (const Metric& metric : ProcessMetrics()) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(ProcessMetricsTest, ResidentMemoryGrowsWithWhatIsWritten) {
  constexpr size_t kBytes = size_t{64} << 20;
  const double before = ValueOf("process_resident_memory_bytes");
  std::vector<char> memory(kBytes, 1);
  const double after = ValueOf("process_resident_memory_bytes");
  EXPECT_EQ(memory.back(), 1);
  EXPECT_GE(after - before, kBytes / 2);
}

TEST(ProcessMetricsTest, ProcessorTimeGrowsWithWork) {
  const double before = ValueOf("process_cpu_seconds_total");
  while (ValueOf("process_cpu_seconds_total") == before) {
  }
  EXPECT_GT(ValueOf("process_cpu_seconds_total"), before);
}

TEST(ProcessMetricsTest, TheBuildHasItsVersion) {
  EXPECT_EQ(ValueOf("lockstep_build_info"), 1);
  EXPECT_THAT(FormatMetrics(ProcessMetrics()),
              ::testing::ContainsRegex(
                  "lockstep_build_info.version=\"[0-9]+\\.[0-9.]+\". 1"));
}

}  // namespace
}  // namespace lockstep
