#ifndef LOCKSTEP_TESTS_BENCHMARK_RESOURCE_USAGE_H_
#define LOCKSTEP_TESTS_BENCHMARK_RESOURCE_USAGE_H_

#include <cstdint>
#include <string>

namespace lockstep::benchmark {

// The resident memory of one process.
//
// Units: bytes.
struct ProcessMemory {
  int64_t anonymous = 0;  // heap and stacks
  int64_t file = 0;       // programs, libraries and mapped files
  int64_t shared = 0;     // shared memory and files on a memory file system
  int64_t peak = 0;       // the maximum of the three together

  int64_t resident() const { return anonymous + file + shared; }
};

// The resources that a candidate's processes have used so far. All of them have
// one parent.
struct ResourceUsage {
  double cpu_seconds = 0;  // user and system, of all processes
  ProcessMemory server;    // of the largest server; zeros if there is none
  // Sent over loopback, with headers, by all processes of this network name
  // space: in a shared one, also by others (cubic.sh makes one).
  int64_t sent_bytes = 0;
};

// Sums over the children of this process's parent, including this process.
// Ended processes that were waited for are not counted.
ResourceUsage UsageOfSiblings();

// Parses the text of /proc/PID/status; missing fields are zero.
ProcessMemory ParseMemory(const std::string& status);

// Parses the text of /proc/net/dev; 0 without a loopback device.
int64_t ParseSentBytes(const std::string& devices);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_RESOURCE_USAGE_H_
