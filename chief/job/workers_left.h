#ifndef LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_
#define LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "chief/job/job_settings.h"
#include "chief/members/membership_table.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// WorkersLeft decides whether enough workers are left for another step. A
// worker that has used up its data, or has failed for good, is not left.
//
// Threads: belongs to the chief's loop.
// Borrows: the job and the settings.
class WorkersLeft {
 public:
  WorkersLeft(const JobConfig& job, const JobSettings& settings)
      : job_(job), settings_(settings) {}

  // Records that the worker has used up its data.
  void EndedInput(int worker) { ended_.insert(worker); }
  // Records that the job goes back: no worker has used up its data then.
  void BeginAnew() { ended_.clear(); }

  // True if too few workers have data left for another step. A worker that has
  // registered again counts as having data.
  bool InputEnded(const MembershipTable& members) const;
  std::vector<int> ended_input() const {
    return {ended_.begin(), ended_.end()};
  }

  // True if so many workers have left, in good order or not, that no step can
  // end until one is started again. Dead workers do not count as having left:
  // they may come back.
  bool TooFewStay(const std::vector<MembershipTable::Member>& members) const;

  // Fails if `dead` cannot take part and too few workers are left that can:
  // another start would fail in the same way.
  //
  //   kAborted  too few workers are left
  absl::Status CheckEnough(
      const MembershipTable::Dead& dead,
      const std::vector<MembershipTable::Member>& members) const;

 private:
  int Needed() const;

  const JobConfig& job_;
  const JobSettings& settings_;
  std::set<int> ended_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_
