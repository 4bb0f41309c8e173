#ifndef LOCKSTEP_COMMON_MEMBERSHIP_KEPT_MESSAGES_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_KEPT_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {

// KeptMessages holds what a member keeps between its calls to the chief.
// Private to common/membership.
//
// Threads: not thread-safe; ChiefClient guards it.
struct KeptMessages {
  // Fills in the history, as old as it is then, if the chief wants it, and the
  // workers and the job file that the chief has named.
  void Fill(v1::HeartbeatRequest& request, absl::Time now) const;

  void TakeHistory(v1::HeartbeatResponse& response, absl::Time now);

  v1::DescribeModelRequest description;  // for a chief that is started again
  std::vector<int> workers;              // as RegisterResponse told them
  uint64_t job_fingerprint = 0;          // likewise
  // For a restarted chief: the job's past, and when it was received.
  std::optional<v1::JobHistory> history;
  absl::Time history_at = absl::InfinitePast();
  bool history_wanted = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_KEPT_MESSAGES_H_
