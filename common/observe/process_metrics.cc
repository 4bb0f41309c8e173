#include "common/observe/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace lockstep {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

std::vector<Metric> ProcessMetrics() {
  std::vector<Metric> metrics = {{"lockstep_build_info",
                                  "1; the version is a label.",
                                  Metric::Kind::kGauge,
                                  1,
                                  {{"version", LOCKSTEP_VERSION}}}};
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    metrics.push_back({"process_cpu_seconds_total",
                       "Processor time, user and system.",
                       Metric::Kind::kCounter,
                       Seconds(usage.ru_utime) + Seconds(usage.ru_stime)});
  }
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  if (statm >> pages >> resident) {
    const double page_size = static_cast<double>(sysconf(_SC_PAGESIZE));
    metrics.push_back({"process_resident_memory_bytes",
                       "Memory that is in use and not swapped out.",
                       Metric::Kind::kGauge, resident * page_size});
  }
  return metrics;
}

}  // namespace lockstep
