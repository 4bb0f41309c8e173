#include "common/observe/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/memory/usable_memory.h"
#include "common/process/process_usage.h"

namespace lockstep {
namespace {

std::optional<std::string> ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open()) return std::nullopt;
  return text;
}

void AddUsage(MetricFamilies& metrics) {
  const ProcessUsage usage = ReadProcessUsage();
  metrics.Counter("process_cpu_seconds_total",
                  "Processor time, user and system.",
                  absl::ToDoubleSeconds(usage.processor_time));
  metrics.Gauge("process_virtual_memory_bytes", "Memory that is mapped.",
                static_cast<double>(usage.virtual_bytes));
  metrics.Gauge("process_resident_memory_bytes",
                "Memory that is in use and not swapped out.",
                static_cast<double>(usage.resident_bytes));
  metrics.Gauge("lockstep_process_memory_limit_bytes",
                "Memory and swap that the control groups above the process "
                "leave it, at most the machine's.",
                static_cast<double>(UsableMemory::OfThisProcess().bytes));
}

void AddFiles(MetricFamilies& metrics) {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    // Minus the descriptor that this listing itself has opened.
    metrics.Gauge("process_open_fds", "Open files and connections.",
                  static_cast<double>(std::distance(
                      begin(files), std::filesystem::directory_iterator())) -
                      1);
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    metrics.Gauge("process_max_fds", "Limit of open files.",
                  static_cast<double>(limit.rlim_cur));
  }
}

// Unix time at which the process started; the kernel counts from its boot.
std::optional<double> StartTime() {
  const std::optional<std::string> stat = ReadAll("/proc/self/stat");
  std::ifstream system("/proc/stat");
  double booted = 0;
  for (std::string word; system >> word;) {
    if (word == "btime") system >> booted;
  }
  if (!stat.has_value() || booted == 0) return std::nullopt;
  // The second field is the name, in brackets, and may have any letters.
  const std::vector<std::string> fields = absl::StrSplit(
      stat->substr(stat->rfind(')') + 1), ' ', absl::SkipEmpty());
  double ticks = 0;
  // starttime is field 22 of the file, and fields[0] is field 3.
  if (fields.size() < 20 || !absl::SimpleAtod(fields[19], &ticks)) {
    return std::nullopt;
  }
  return booted + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

MetricFamilies ProcessMetrics() {
  MetricFamilies metrics;
  metrics.Gauge("lockstep_build_info", "1; the labels say what was built.", 1,
                {{"version", LOCKSTEP_VERSION}, {"compiler", __VERSION__}});
  AddUsage(metrics);
  AddFiles(metrics);
  if (const std::optional<double> started = StartTime()) {
    metrics.Gauge("process_start_time_seconds",
                  "Unix time at which the process started.", *started);
  }
  return metrics;
}

}  // namespace lockstep
