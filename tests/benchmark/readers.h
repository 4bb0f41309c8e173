#ifndef LOCKSTEP_TESTS_BENCHMARK_READERS_H_
#define LOCKSTEP_TESTS_BENCHMARK_READERS_H_

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/benchmark/candidate.h"
#include "tests/testing/process_cluster.h"

namespace lockstep::benchmark {

// Readers is an open page and a Prometheus: each second it reads the chief's
// page and the metrics of all processes of a candidate that is observed, whose
// ports it finds in their logs.
//
// Threads: reads in a thread of its own, which ends with the object.
// Borrows: the cluster, which must stay as it is.
class Readers {
 public:
  Readers(const Candidate& candidate, testing::ProcessCluster& cluster);
  ~Readers();
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  // The answers that were read to their end so far.
  int answers() const { return answers_; }

 private:
  void Run();

  testing::ProcessCluster& cluster_;
  std::vector<std::pair<std::string, int>> tasks_;
  std::atomic<bool> ends_ = false;
  std::atomic<int> answers_ = 0;
  std::thread thread_;
};

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_READERS_H_
