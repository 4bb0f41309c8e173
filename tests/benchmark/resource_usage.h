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
  int64_t peak = 0;       // the most that the three ever were together

  int64_t resident() const { return anonymous + file + shared; }
};

// What a candidate's processes have used up to a moment. All of them have one
// parent.
struct ResourceUsage {
  double cpu_seconds = 0;  // user and system, of all processes
  ProcessMemory server;    // of the largest server; zeros if there is none
};

// The children of this process's parent, this process included. What has ended
// and been waited for is not counted.
ResourceUsage UsageOfSiblings();

// What `status`, the text of /proc/PID/status, says; zeros where it is silent.
ProcessMemory ParseMemory(const std::string& status);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_RESOURCE_USAGE_H_
