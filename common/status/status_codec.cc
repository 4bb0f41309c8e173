#include "common/status/status_codec.h"

namespace lockstep {
namespace {

// Any numbers are accepted: absl::Duration saturates.
absl::Duration Decode(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

JobState Decode(v1::JobState state) {
  switch (state) {
    case v1::JOB_STARTING:
      return JobState::kStarting;
    case v1::JOB_TRAINING:
      return JobState::kTraining;
    case v1::JOB_FINISHING:
      return JobState::kFinishing;
    case v1::JOB_DONE:
      return JobState::kDone;
    case v1::JOB_FAILED:
      return JobState::kFailed;
    case v1::JOB_STOPPED:
      return JobState::kStopped;
    default:
      return JobState::kUnknown;
  }
}

MemberState Decode(v1::MemberState state) {
  switch (state) {
    case v1::MEMBER_MISSING:
      return MemberState::kMissing;
    case v1::MEMBER_ALIVE:
      return MemberState::kAlive;
    case v1::MEMBER_DEAD:
      return MemberState::kDead;
    case v1::MEMBER_LEFT:
      return MemberState::kLeft;
    case v1::MEMBER_JOINING:
      return MemberState::kJoining;
    default:
      return MemberState::kUnknown;
  }
}

WorkerCounts Decode(const v1::WorkerProgress& progress) {
  std::vector<std::pair<std::string, double>> figures;
  for (const v1::Figure& figure : progress.figures()) {
    figures.emplace_back(figure.name(), figure.value());
  }
  return {.local_step = progress.local_step(),
          .passes = progress.passes(),
          .accepted = progress.accepted(),
          .stale = progress.stale(),
          .waiting = Decode(progress.waiting()),
          .activity = progress.activity(),
          .computes = progress.activity_kind() == v1::ACTIVITY_COMPUTES,
          .activity_age = Decode(progress.activity_age()),
          .figures = std::move(figures)};
}

MemberStatus Decode(const v1::MemberStatus& member) {
  MemberStatus decoded = {.task = member.task(),
                          .state = Decode(member.state())};
  if (member.has_since_heartbeat()) {
    decoded.since_heartbeat = Decode(member.since_heartbeat());
  }
  if (member.has_load()) {
    decoded.load = {.resident_bytes = member.load().resident_bytes(),
                    .memory_limit_bytes = member.load().memory_limit_bytes(),
                    .processors = member.load().processors()};
  }
  if (member.has_progress()) {
    decoded.counts = Decode(member.progress());
    // The heartbeat had the age of its own time.
    decoded.counts->activity_age +=
        decoded.since_heartbeat.value_or(absl::ZeroDuration());
  }
  return decoded;
}

Evaluation Decode(const v1::EvaluationStatus& evaluation) {
  Evaluation decoded = {.step = evaluation.global_step(),
                        .loss = evaluation.loss(),
                        .accuracy = evaluation.accuracy()};
  if (evaluation.has_auc()) decoded.auc = evaluation.auc();
  for (const v1::Figure& figure : evaluation.figures()) {
    decoded.figures.emplace_back(figure.name(), figure.value());
  }
  return decoded;
}

DeathStatus Decode(const v1::DeathStatus& death) {
  DeathStatus decoded = {.task = death.task(),
                         .reason = death.reason(),
                         .held = death.held(),
                         .redone = death.redone(),
                         .since = Decode(death.since())};
  if (death.has_stood_still())
    decoded.stood_still = Decode(death.stood_still());
  return decoded;
}

}  // namespace

JobStatus DecodeStatus(const v1::GetStatusResponse& response) {
  JobStatus status = {
      .job_name = response.job_name(),
      .job_id = response.job_id(),
      .state = Decode(response.state()),
      .reason = response.reason(),
      .step = response.global_step(),
      .train_steps = response.train_steps(),
      .training_time = Decode(response.training_time()),
      .loss = response.loss(),
      .examples_per_second = response.examples_per_second(),
      .last_checkpoint_step = response.last_checkpoint_step(),
      .checkpoint_directory = response.checkpoint_directory(),
      .epoch = response.epoch(),
      .checkpoint_trouble = response.checkpoint_trouble(),
      .security_troubles = {response.security_troubles().begin(),
                            response.security_troubles().end()}};
  // An older chief does not send it; the default stays.
  if (!response.example_unit().empty()) {
    status.example_unit = response.example_unit();
  }
  if (response.has_last_checkpoint_age()) {
    status.last_checkpoint_age = Decode(response.last_checkpoint_age());
  }
  const v1::RunSettings& settings = response.settings();
  status.settings = {
      .revision = settings.revision(),
      .replicas_to_aggregate = settings.replicas_to_aggregate(),
      .learning_rate = response.learning_rate(),
      .learning_rate_now = response.learning_rate_now(),
      .paused = settings.paused(),
      .workers = {settings.workers().begin(), settings.workers().end()},
      .micro_batches_per_step = response.micro_batches_per_step(),
      .micro_batches_per_push = response.micro_batches_per_push()};
  if (response.has_evaluation()) {
    status.evaluation = Decode(response.evaluation());
  }
  const v1::LossStatus& losses = response.losses();
  status.losses = {.recoveries = losses.recoveries(),
                   .steps_redone = losses.steps_redone(),
                   .steps_repeated = losses.steps_repeated(),
                   .stood_still = Decode(losses.stood_still())};
  for (const v1::DeathStatus& death : response.deaths()) {
    status.deaths.push_back(Decode(death));
  }
  for (const v1::Notice& notice : response.notices()) {
    status.notices.push_back(
        {.number = notice.number(), .text = notice.text()});
  }
  for (const v1::MemberStatus& member : response.members()) {
    status.members.push_back(Decode(member));
  }
  for (const v1::WaitStatus& wait : response.waits()) {
    status.waits.push_back({.owner = wait.owner(),
                            .waits_for = wait.waits_for(),
                            .since = Decode(wait.since())});
  }
  return status;
}

}  // namespace lockstep
