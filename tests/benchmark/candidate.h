#ifndef LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
#define LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// What is measured: a kind of cluster with a model.
struct Candidate {
  // "lockstep"; "tcp", whose both directions are busy at once, or
  // "tcp_two_phase"; "naive", which is gRPC as one writes it first, or
  // "naive_tuned" with the allocator set as Lockstep's programs set it;
  // "stream", one message of gRPC each way; "chunk", a bare gRPC call for each
  // MiB. Only lockstep has more than one server.
  std::string system = "lockstep";
  std::string model = "dense";  // as MakeBenchmarkVariables() has it
  int64_t bytes = 0;            // of a model that has a size
  int workers = 2;              // 1 to 64; N
  int servers = 1;
  int64_t warmup = 0;  // steps before the measured ones
  int64_t steps = 0;   // measured steps of a round

  // Of lockstep.
  int aggregate = 0;        // A; 0: all workers. Fewer compute equal gradients
  bool compatible = false;  // mode
  int initial_tokens = -1;  // compatible mode; -1: the default
  std::string job_text;     // further lines of the job file
  bool shared_memory = false;  // between workers and servers
  bool own_memory = false;     // state goes with the server's process
  // A loaded machine is no dead process.
  int64_t heartbeat_ms = 1000;
  int64_t lease_ms = 60000;
  int pollers = 0;           // of servers, as PollerLimit has it
  int64_t compute_ms = 0;    // what a gradient takes to compute
  double slow_factor = 1;    // by how much longer for the last worker
  bool last_absent = false;  // the last worker is never started

  bool operator==(const Candidate&) const = default;
};

// A few words that tell it from others: "lockstep dense 100 MiB, 2 workers".
std::string Describe(const Candidate& candidate);

// Starts the candidate's processes, runs them to their end and returns the
// record of worker 0, or of another one if worker 0 missed more steps. Nothing
// of them is left behind.
//
//   kAborted, kDeadlineExceeded  a process failed or hangs; has its last words
//   others                       as ProcessCluster
absl::StatusOr<RunRecord> RunOnce(const Candidate& candidate);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
