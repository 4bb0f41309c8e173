#ifndef LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_
#define LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "chief/job/job_settings.h"
#include "chief/members/membership_table.h"

namespace lockstep::chief {

// WorkersLeft says whether enough workers are left for another step: those that
// have neither used up their data nor failed for good.
//
// Borrows: the settings.
class WorkersLeft {
 public:
  explicit WorkersLeft(const JobSettings& settings) : settings_(settings) {}

  // The worker has used up its data.
  void EndedInput(int worker) { ended_.insert(worker); }

  // Too few workers have data left for another step. One that has registered
  // again has not ended yet.
  bool InputEnded(const MembershipTable& members) const;
  std::vector<int> ended_input() const {
    return {ended_.begin(), ended_.end()};
  }

  // Fails where `dead` has failed for good and too few workers are left that
  // have not: another start would fail in the same way.
  absl::Status CheckEnough(
      const MembershipTable::Dead& dead,
      const std::vector<MembershipTable::Member>& members) const;

 private:
  const JobSettings& settings_;
  std::set<int> ended_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_WORKERS_LEFT_H_
