#ifndef LOCKSTEP_TESTS_BENCHMARK_RECOVERY_TABLE_H_
#define LOCKSTEP_TESTS_BENCHMARK_RECOVERY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/benchmark/recovery_run.h"

namespace lockstep::benchmark {

// All deaths of one kind in jobs of one size.
struct RecoveryRow {
  int64_t megabytes = 0;
  Victim victim = Victim::kWorker;
  std::vector<Recovery> rounds;
};

// Target of the median time from being up to going on, in milliseconds: two
// seconds; for a server without state, three times the time to read the
// checkpoint, if that is more.
double RecoveryGoalMs(const RecoveryRow& row);

// The measured median.
double RecoveryMs(const RecoveryRow& row);

// Lines of text.
std::string RecoveryTable(const std::vector<RecoveryRow>& rows);

// One line of JSON per row.
std::string RecoveryLines(const std::vector<RecoveryRow>& rows);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_RECOVERY_TABLE_H_
