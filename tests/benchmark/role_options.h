#ifndef LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
#define LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace lockstep::benchmark {

// What one process of a candidate is told on its command line. Where its peers
// are it reads in TF_CONFIG.
struct RoleOptions {
  std::string role;    // "worker", or "tcp_", "naive_", "stream_" or "chunk_"
                       // with "server" or "worker"
  std::string model;   // as MakeBenchmarkVariables() has it
  int64_t bytes = 0;   // of the model
  int64_t warmup = 0;  // steps that are not recorded
  int64_t steps = 0;   // steps that are
  std::string record;  // worker 0's file, written at the end; where there
                       // are backups, worker i's has ".i" behind it
  bool two_phase = false;  // tcp_server: sends nothing while it receives
  bool default_allocator = false;  // without Lockstep's settings

  // Of role worker.
  // Not all workers are needed in a step: all compute the same gradients, and
  // each writes a record, for any one may miss steps.
  bool backups = false;
  int64_t compute_ms = 0;  // what a gradient takes to compute
  int slow_worker = -1;    // index of one that takes longer; -1: none
  double slow_factor = 1;  // by how much
};

// Every program makes some steps more than are recorded, so that all of its
// processes still run when worker 0 looks at what they used. And the first step
// of Lockstep has no measured beginning, and its worker 0, where it is not
// needed, may miss the last ones.
inline constexpr int64_t kMoreSteps = 3;

inline int64_t AllSteps(const RoleOptions& options) {
  return options.warmup + options.steps + kMoreSteps;
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
