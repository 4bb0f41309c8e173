#ifndef LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
#define LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace lockstep::benchmark {

// What one process of a candidate is told on its command line. Where its peers
// are it reads in TF_CONFIG.
struct RoleOptions {
  std::string role;     // "worker", "tcp_server" or "tcp_worker"
  std::string model;    // as MakeBenchmarkVariables() has it
  int64_t bytes = 0;    // of the model
  int64_t warmup = 0;   // steps that are not recorded
  int64_t steps = 0;    // steps that are
  std::string samples;  // worker 0's file, written at the end
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
