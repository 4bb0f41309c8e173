#include "common/membership/kept_messages.h"

#include <utility>

#include "common/membership/coordinator_answers.h"

namespace lockstep {

void KeptMessages::Fill(v1::HeartbeatRequest& request, absl::Time now) const {
  request.mutable_workers()->Add(workers.begin(), workers.end());
  request.set_job_fingerprint(job_fingerprint);
  if (!history_wanted || !history.has_value()) return;
  *request.mutable_history() = Aged(*history, now - history_at);
}

void KeptMessages::TakeHistory(v1::HeartbeatResponse& response,
                               absl::Time now) {
  history_wanted = response.history_wanted();
  if (!response.has_history()) return;
  history = std::move(*response.mutable_history());
  history_at = now;
}

}  // namespace lockstep
