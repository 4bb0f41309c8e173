#include "common/observe/process_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

double ValueOf(const std::string& name) {
  const MetricFamilies metrics = ProcessMetrics();
  for (const auto& family : metrics.families()) {
    if (family.name != name) continue;
    return family.type == prometheus::MetricType::Counter
               ? family.metric.front().counter.value
               : family.metric.front().gauge.value;
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

TEST(ProcessMetricsTest, OpenFilesAreCounted) {
  const double before = ValueOf("process_open_fds");
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(ValueOf("process_open_fds"), before + 1);
  close(file);
  EXPECT_EQ(ValueOf("process_open_fds"), before);
  EXPECT_LT(before, ValueOf("process_max_fds"));
}

TEST(ProcessMetricsTest, StartIsBeforeNowAndAfterTheBoot) {
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  const double started = ValueOf("process_start_time_seconds");
  EXPECT_LT(started, now + 2);  // the kernel's boot time has whole seconds
  EXPECT_GT(started, now - 600);
}

TEST(ProcessMetricsTest, MemoryInUseIsBelowTheLimit) {
  EXPECT_LT(ValueOf("process_resident_memory_bytes"),
            ValueOf("lockstep_process_memory_limit_bytes"));
}

TEST(ProcessMetricsTest, TheBuildHasItsVersion) {
  EXPECT_EQ(ValueOf("lockstep_build_info"), 1);
  EXPECT_THAT(
      ProcessMetrics().ToText(),
      ::testing::ContainsRegex("lockstep_build_info.version=\"[0-9]+\\.[0-9.]+"
                               "\",compiler=\"[^\"]+\". 1"));
}

}  // namespace
}  // namespace lockstep
