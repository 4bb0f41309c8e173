#ifndef LOCKSTEP_CHIEF_PAGE_WORKER_ROWS_H_
#define LOCKSTEP_CHIEF_PAGE_WORKER_ROWS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/page/worker_paces.h"
#include "common/status/job_status.h"

namespace lockstep::chief {

// A worker whose slowness is at least this factor is shown as slow.
inline constexpr double kSlow = 1.5;

// One worker as the page shows it.
struct WorkerRow {
  MemberStatus member;
  std::optional<WorkerPace> pace;
  std::string trouble;  // "1.8 times slower"; empty: none
  double weight = 0;    // of the trouble; a standstill weighs most
};

// Many workers in one line.
struct WorkerSum {
  int64_t workers = 0;
  int64_t passes = 0;
  int64_t accepted = 0;
  int64_t stale = 0;
  absl::Duration waiting;
};

// Returns the workers of a job, the worst trouble first; those without trouble
// in the order of the chief. `heartbeat_interval`: the job's; a worker is
// silent only after several of them.
std::vector<WorkerRow> RankWorkers(const JobStatus& status,
                                   const std::map<int, WorkerPace>& paces,
                                   absl::Duration heartbeat_interval);

// Sums the rows from `first` on.
WorkerSum SumRows(const std::vector<WorkerRow>& rows, size_t first);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_WORKER_ROWS_H_
