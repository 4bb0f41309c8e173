#include "common/process/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/strip.h"

namespace lockstep {

ProcessUsage ReadProcessUsage() {
  ProcessUsage read;
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    read.processor_time = absl::DurationFromTimeval(usage.ru_utime) +
                          absl::DurationFromTimeval(usage.ru_stime);
  }
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  int64_t resident = 0;
  if (statm >> pages >> resident) {
    const int64_t page_size = sysconf(_SC_PAGESIZE);
    read.virtual_bytes = pages * page_size;
    read.resident_bytes = resident * page_size;
  }
  return read;
}

int64_t ReadMemoryLimit() {
  int64_t limit = int64_t{sysconf(_SC_PAGESIZE)} * sysconf(_SC_PHYS_PAGES);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // The line "0::/path" is of version 2, where each group above limits, too.
    absl::string_view path = line;
    if (!absl::ConsumePrefix(&path, "0::/")) continue;
    const std::filesystem::path root = "/sys/fs/cgroup";
    std::filesystem::path group = root / std::string(path);
    while (true) {
      std::ifstream file(group / "memory.max");
      int64_t bytes = 0;
      // The word "max" is no number and means no limit.
      if (file >> bytes && bytes > 0) limit = std::min(limit, bytes);
      if (group == root || group == group.parent_path()) break;
      group = group.parent_path();
    }
  }
  return limit;
}

}  // namespace lockstep
