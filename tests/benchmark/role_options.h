#ifndef LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
#define LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace lockstep::benchmark {

// The command line of one process of a candidate. It reads the addresses of its
// peers from TF_CONFIG.
struct RoleOptions {
  std::string role;        // "worker", "gloo_worker", or "tcp_", "naive_",
                           // "stream_" or "chunk_" with "server" or "worker"
  std::string model;       // as in MakeBenchmarkVariables()
  int64_t bytes = 0;       // of the model
  int64_t warmup = 0;      // steps that are not recorded
  int64_t steps = 0;       // recorded steps
  std::string record;      // worker 0's file, written at the end; with
                           // backups, worker i's is this name plus ".i"
  bool two_phase = false;  // tcp_server: no sending while receiving
  bool encrypt = false;    // tcp_: with OpenSSL, on two connections
  bool default_allocator = false;  // without Lockstep's settings

  // Only for role worker. With backups, steps do not need all workers: all
  // compute the same gradients, and each writes a record, because each may miss
  // steps.
  std::string tls_dir;  // its certificate, as in CommonFlags; empty: none
  std::string status_address;  // likewise; where there is one, spans are kept
  bool mirror_alone = false;   // shares memory with no other server
  bool backups = false;
  int64_t compute_ms = 0;  // time to compute a gradient
  int slow_worker = -1;    // index of the first slower worker; -1: none
  double slow_factor = 1;  // factor of time of it and those behind it
  double sigma = 0;        // shape of a lognormal time of passes; 0: constant
  int hang_worker = -1;    // stands still for hang_ms every hang_every_ms
  int64_t hang_ms = 0;     // 0: never
  int64_t hang_every_ms = 0;
};

// Every program makes some more steps than it records, so that all its
// processes still run when worker 0 reads their resource usage. Also,
// Lockstep's first step has no measured start, and its worker 0, in a job with
// backups, may miss the last steps.
inline constexpr int64_t kMoreSteps = 3;

inline int64_t AllSteps(const RoleOptions& options) {
  return options.warmup + options.steps + kMoreSteps;
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_ROLE_OPTIONS_H_
