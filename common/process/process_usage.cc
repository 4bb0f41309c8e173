#include "common/process/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

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

}  // namespace lockstep
