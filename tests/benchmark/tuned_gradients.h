#ifndef LOCKSTEP_TESTS_BENCHMARK_TUNED_GRADIENTS_H_
#define LOCKSTEP_TESTS_BENCHMARK_TUNED_GRADIENTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::benchmark {

// A chief's change of the backups of a job whose replicas_to_aggregate is AUTO.
struct TunedBackups {
  int64_t after_step = 0;
  int backups = 0;

  bool operator==(const TunedBackups&) const = default;
};

// The changes that a chief's log tells of, oldest first.
std::vector<TunedBackups> ChangesInLog(absl::string_view log);

// The mean number of gradients of the steps after `from` up to `to` (> `from`).
// No worker is a backup at first.
double MeanGradients(const std::vector<TunedBackups>& changes, int workers,
                     int64_t from, int64_t to);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_TUNED_GRADIENTS_H_
