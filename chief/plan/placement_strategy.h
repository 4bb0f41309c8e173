#ifndef LOCKSTEP_CHIEF_PLAN_PLACEMENT_STRATEGY_H_
#define LOCKSTEP_CHIEF_PLAN_PLACEMENT_STRATEGY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// TensorFlow's strategies that choose the server of a variable or of a part.
// The result depends on the order of the calls.
namespace lockstep::chief {

// RoundRobin chooses server 0, then 1, and so on; after the last one, 0 again.
//
// Threads: not thread-safe.
class RoundRobin {
 public:
  // `num_servers` > 0.
  explicit RoundRobin(int num_servers) : num_servers_(num_servers) {}

  int Next() {
    const int server = next_;
    next_ = (next_ + 1) % num_servers_;
    return server;
  }

 private:
  const int num_servers_;
  int next_ = 0;
};

// GreedyByLoad chooses the server with the least load so far, the lowest index
// among equals.
//
// Threads: not thread-safe.
class GreedyByLoad {
 public:
  // `num_servers` > 0.
  explicit GreedyByLoad(int num_servers) : loads_(num_servers, 0) {}

  // `load` >= 0, usually bytes.
  int Next(int64_t load);

 private:
  std::vector<int64_t> loads_;
};

// Returns the MD5 of "name_seed" as one number, modulo `num_servers` (> 0): the
// server of a variable does not depend on other variables.
//
//   kUnavailable  OpenSSL is configured without MD5
absl::StatusOr<int> ServerByName(absl::string_view name, uint64_t seed,
                                 int num_servers);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PLAN_PLACEMENT_STRATEGY_H_
