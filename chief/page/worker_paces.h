#ifndef LOCKSTEP_CHIEF_PAGE_WORKER_PACES_H_
#define LOCKSTEP_CHIEF_PAGE_WORKER_PACES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "chief/members/membership_table.h"

namespace lockstep::chief {

// The recent pace of a worker.
struct WorkerPace {
  double busy_seconds = 0;   // of a pass: its time without waits
  double slowness = 1;       // busy_seconds divided by the workers' median
  double waiting_share = 0;  // of its time, in [0, 1]
  double counted_share = 0;  // of its passes, in [0, 1]
};

// WorkerPaces compares workers by the reports in their heartbeats. Each figure
// is a mean in which the newest report has a weight of 0.3; reports without a
// new pass change nothing. A report covers the time since the previous report,
// not the time between two calls of Add().
//
// Threads: not thread-safe.
class WorkerPaces {
 public:
  // Must be called in the order of time.
  void Add(const std::vector<MembershipTable::Member>& members);

  // By worker; only live ones that have made passes since the first Add().
  std::map<int, WorkerPace> Get() const;

 private:
  struct Seen {
    uint64_t incarnation = 0;
    absl::Time at;  // of the report
    Progress progress;
    bool alive = false;
    bool measured = false;
    WorkerPace pace;
  };

  std::map<int, Seen> seen_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_WORKER_PACES_H_
