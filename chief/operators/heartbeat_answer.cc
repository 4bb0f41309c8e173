#include "chief/operators/heartbeat_answer.h"

namespace lockstep::chief {

void FillHeard(const MemberAnswers::Heard& heard,
               v1::HeartbeatResponse& response) {
  response.set_state(static_cast<v1::JobState>(heard.job.state));
  response.set_reason(heard.job.reason);
  response.set_global_step(heard.job.global_step);
  response.set_model_wanted(heard.model_wanted);
  response.set_hold(heard.job.hold);
  response.set_state_saved(heard.job.state_saved);
  response.set_leave(heard.leave);
}

}  // namespace lockstep::chief
