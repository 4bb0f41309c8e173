#include "common/membership/coordinator_answers.h"

#include "common/base/status_macros.h"
#include "common/job/codec/job_config_codec.h"
#include "common/text/plain_text.h"
#include "common/wire/wire_codec.h"

namespace lockstep {

Membership::Answer AnswerOf(const v1::HeartbeatResponse& response) {
  using Job = Membership::Answer::Job;
  Membership::Answer answer;
  answer.state_saved = response.state_saved();
  switch (response.state()) {
    case v1::JOB_TRAINING:
      answer.job = Job::kTrains;
      break;
    case v1::JOB_DONE:
      answer.job = Job::kDone;
      break;
    case v1::JOB_STOPPED:
      answer.job = Job::kStopped;
      answer.reason = CutText(response.reason());
      // Only a stopped job may be held: a restart then makes no sense.
      answer.hold = response.hold();
      break;
    case v1::JOB_FAILED:
      answer.job = Job::kFailed;
      answer.reason = CutText(response.reason());
      break;
    default:
      break;
  }
  return answer;
}

absl::StatusOr<JobConfig> JobOf(const v1::RegisterResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job, FromProto(response.job()));
  // The rest of the process relies on a valid job.
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(job));
  return job;
}

v1::JobHistory Aged(v1::JobHistory history, absl::Duration ago) {
  if (history.training()) {
    *history.mutable_training_time() =
        ToProto(FromProto(history.training_time()) + ago);
  }
  for (v1::DeathStatus& death : *history.mutable_deaths()) {
    // Ages are relative to the moment of the message, so they grow with the
    // time that a server keeps it.
    *death.mutable_since() = ToProto(FromProto(death.since()) + ago);
  }
  return history;
}

}  // namespace lockstep
