#ifndef LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
#define LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {

// A measured system: a kind of cluster with a model.
struct Candidate {
  // "lockstep"; "tcp", which sends and receives at the same time,
  // "tcp_openssl", which also encrypts, or "tcp_two_phase"; "naive", a first
  // gRPC implementation, or "naive_tuned" with the allocator settings of
  // Lockstep's programs; "stream", one gRPC message each way; "chunk", a bare
  // gRPC call for each MiB; "gloo", whose workers reduce without a server. Only
  // lockstep has more than one server.
  std::string system = "lockstep";
  std::string model = "dense";  // as MakeBenchmarkVariables() has it
  int64_t bytes = 0;            // for models of variable size
  int workers = 2;              // 1 to 64; N
  int servers = 1;
  int64_t warmup = 0;  // steps before the measured ones
  int64_t steps = 0;   // measured steps of a round

  // Only for lockstep.
  int aggregate = 0;        // A; 0: all workers. Fewer compute equal gradients
  bool compatible = false;  // mode
  int initial_tokens = -1;  // compatible mode; -1: the default
  std::string job_text;     // further lines of the job file
  bool shared_memory = false;             // between workers and servers
  bool shares_with_mirror_alone = false;  // not with the other mirrors
  bool own_memory = false;  // state ends with the server's process
  bool tls = false;         // with certificates
  // A loaded machine must not lose a process to its lease.
  int64_t heartbeat_ms = 1000;
  int64_t lease_ms = 60000;
  int pollers = 0;         // of servers, as in PollerLimit
  int64_t compute_ms = 0;  // time to compute a gradient
  double slow_factor = 1;  // the last workers take longer by this factor
  int slow_workers = 1;    // so many of them
  double sigma = 0;  // passes take a lognormal time with this shape, same mean
  // The last worker stands still for hang_ms after each hang_every_ms.
  int64_t hang_ms = 0;
  int64_t hang_every_ms = 0;
  bool last_absent = false;  // the last worker is never started
  int numbers = 0;     // work is shared: micro-batches of a step; 0: it is not
  int push = 0;        // of these in one push; 0: the chief chooses
  bool tuned = false;  // replicas_to_aggregate is AUTO
  // The last worker is killed and started again so often; 0: never.
  int64_t kill_every_ms = 0;
  // Summaries, spans of workers, and the page and the metrics of all processes,
  // read each second.
  bool observed = false;

  bool operator==(const Candidate&) const = default;
};

// Names it in a few words: "lockstep dense 100 MiB, 2 workers".
std::string Describe(const Candidate& candidate);

// Starts the candidate's processes, runs them to their end and returns the
// record of worker 0, or of another worker if worker 0 missed more steps.
// Removes all files.
//
//   kAborted, kDeadlineExceeded  a process failed or hangs; quotes its log
//   others                       as ProcessCluster
absl::StatusOr<RunRecord> RunOnce(const Candidate& candidate);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_CANDIDATE_H_
