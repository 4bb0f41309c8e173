#include "chief/operators/member_answers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/operators/share_check.h"
#include "chief/plan/placement.h"
#include "common/base/call_limits.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/text/plain_text.h"

namespace lockstep::chief {
namespace {

// True if a table of the model grows. The job file does not say so where the
// user's program gives its tables their limits.
bool AnyGrows(const JobConfig& job,
              const std::vector<VariableSpec>& variables) {
  return job.model.row_limit > 0 ||
         std::any_of(
             variables.begin(), variables.end(),
             [](const VariableSpec& variable) { return variable.grows(); });
}

absl::Status OtherVersion(const Sender& sender, int protocol,
                          const std::string& program, int own) {
  return absl::FailedPreconditionError(
      absl::StrCat(sender.task.ToString(), " speaks protocol version ",
                   protocol, " (program ", program, "); this chief speaks ",
                   own, "; install the same version everywhere"));
}

absl::Status OtherJob(const Sender& sender, const std::string& job_id) {
  return absl::FailedPreconditionError(
      absl::StrCat("identity.job_id is \"", CutText(sender.job_id),
                   "\"; this chief runs \"", job_id,
                   "\": start the task again to join that, or end this chief "
                   "and start that of the other job"));
}

// The answer to the older of two processes of one task. It must not come back:
// otherwise the two would replace each other forever.
absl::Status Twice(const TaskId& task, const absl::Status& why) {
  return absl::AlreadyExistsError(absl::StrCat(
      "another process has taken the place of this one: ", why.message(),
      "; give each process a task of its own, ", task.ToString(),
      " is the newer one's"));
}

// An evaluator reports each score once, so one that a chief takes over has told
// its scores to an earlier chief: it must begin anew, or the job would wait for
// a score that has been reported.
absl::Status CheckKnowsScores(const Sender& sender,
                              const MembershipTable& members) {
  if (sender.task.type != TaskType::kEvaluator ||
      members.Get(sender.task).incarnation != 0) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      "this chief has not heard the evaluator's scores; register with a new "
      "incarnation, and score the newest checkpoint again");
}

// A worker computes by the job that it was told when it registered, and both
// workers and servers send heartbeats and wait for a chief by its times. One
// that an earlier chief has told another job, because the job file has been
// edited, must learn this one. An evaluator registers anew with each chief.
absl::Status CheckKnowsJob(const MemberAnswers::Heartbeat& heartbeat,
                           uint64_t job_fingerprint,
                           const MembershipTable& members) {
  if (heartbeat.sender.task.type == TaskType::kEvaluator ||
      heartbeat.job_fingerprint == 0 ||
      heartbeat.job_fingerprint == job_fingerprint ||
      members.Get(heartbeat.sender.task).incarnation != 0) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      "this chief has another job file than the one before; register with a "
      "new incarnation, and learn the job");
}

}  // namespace

MemberAnswers::MemberAnswers(Options options, MembershipTable& members,
                             StatusTable& status_table,
                             SettingsTable& settings_table)
    : options_(std::move(options)),
      members_(members),
      status_table_(status_table),
      settings_table_(settings_table),
      gpus_(options_.job) {}

absl::Status MemberAnswers::CheckJob(const Sender& sender) const {
  return sender.job_id == options_.job_id ? absl::OkStatus()
                                          : OtherJob(sender, options_.job_id);
}

absl::Status MemberAnswers::CheckMember(const Sender& sender, absl::Time now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(sender));
  return members_.Heartbeat(sender.task, sender.incarnation, nullptr, now);
}

absl::Status MemberAnswers::CheckIsMeant(
    const Registration& registration) const {
  const Sender& sender = registration.sender;
  if (registration.protocol != options_.protocol) {
    return OtherVersion(sender, registration.protocol,
                        CutText(registration.program), options_.protocol);
  }
  if (!registration.expected_job.empty() &&
      registration.expected_job != options_.job.name) {
    return absl::FailedPreconditionError(absl::StrCat(
        sender.task.ToString(), " wants job \"",
        CutText(registration.expected_job), "\"; this chief runs \"",
        options_.job.name, "\"; check the chief's address"));
  }
  return sender.job_id.empty() ? absl::OkStatus() : CheckJob(sender);
}

absl::StatusOr<MemberAnswers::Registered> MemberAnswers::Register(
    const Registration& registration, absl::Time now) {
  const TaskId& task = registration.sender.task;
  const uint64_t incarnation = registration.sender.incarnation;
  const absl::Status part = settings_table_.CheckTakesPart(
      task, registration.again, status_table_.Get(now).settings,
      members_.Get({TaskType::kPs, task.index}));
  if (IsHeld(part)) return Registered{std::string(part.message())};
  LOCKSTEP_RETURN_IF_ERROR(part);
  const MembershipTable::Member before = members_.Get(task);
  LOCKSTEP_RETURN_IF_ERROR(gpus_.Add(task, registration.gpus, members_, [&] {
    return members_.Register(task, incarnation, now);
  }));
  const bool is_new = before.incarnation != incarnation ||
                      before.state != MembershipTable::State::kAlive;
  return Registered{"", is_new,
                    JobOfMember(options_.job, options_.num_workers, task,
                                status_table_.Get(now).settings)};
}

absl::Status MemberAnswers::TakeOver(const Heartbeat& heartbeat,
                                     absl::Time now) {
  const Sender& sender = heartbeat.sender;
  // A chief that was started again takes over members by their heartbeats, but
  // only those that speak its version.
  if (heartbeat.protocol == options_.protocol) {
    LOCKSTEP_RETURN_IF_ERROR(CheckKnowsScores(sender, members_));
    LOCKSTEP_RETURN_IF_ERROR(
        CheckKnowsJob(heartbeat, options_.job_fingerprint, members_));
    return members_.TakeOver(sender.task, sender.incarnation, now);
  }
  if (members_.Get(sender.task).incarnation != 0) return absl::OkStatus();
  return OtherVersion(sender, heartbeat.protocol, "", options_.protocol);
}

absl::StatusOr<MemberAnswers::Heard> MemberAnswers::Hear(
    const Heartbeat& heartbeat, absl::Time now) {
  const Sender& sender = heartbeat.sender;
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(sender));
  LOCKSTEP_RETURN_IF_ERROR(TakeOver(heartbeat, now));
  const absl::Status heard = members_.Heartbeat(
      sender.task, sender.incarnation,
      heartbeat.progress.has_value() ? &*heartbeat.progress : nullptr, now,
      heartbeat.load.has_value() ? &*heartbeat.load : nullptr);
  if (absl::IsFailedPrecondition(heard)) return Twice(sender.task, heard);
  LOCKSTEP_RETURN_IF_ERROR(heard);
  // For a chief that was started again, and has taken the worker over.
  gpus_
      .Add(sender.task, heartbeat.gpus, members_,
           [] { return absl::OkStatus(); })
      .IgnoreError();
  Heard answer{status_table_.Get(now)};
  // Before, a restarted chief does not know yet which workers the job has.
  if (answer.job.state == JobState::kTraining) {
    LOCKSTEP_RETURN_IF_ERROR(CheckShare(sender.task, heartbeat.workers,
                                        answer.job.settings.workers));
  }
  const bool is_worker = sender.task.type == TaskType::kWorker;
  // A server knows the model, but not its examples: it is asked for the model
  // only if no worker describes it: all may have left before this chief began.
  answer.model_wanted = status_table_.variables().empty() &&
                        (is_worker || now - options_.began > kWorkersDescribe);
  answer.leave = is_worker && settings_table_.IsToLeave(sender.task.index);
  if (sender.task.type == TaskType::kPs &&
      AwaitsLastPulls(sender.task.index, answer.job, now)) {
    answer.job.state = JobState::kFinishing;
  }
  return answer;
}

bool MemberAnswers::AwaitsLastPulls(int server, const StatusTable::View& job,
                                    absl::Time now) const {
  if (job.state != JobState::kDone || now - job.since >= kLastPulls ||
      options_.job.model.kind != kExternalModel) {
    return false;
  }
  // A mirror serves the pulls of the worker beside it alone, and may end with
  // it.
  const bool mirrored =
      options_.job.strategy.kind == StrategyKind::kMultiWorkerMirrored;
  const std::vector<MembershipTable::Member> members = members_.Members();
  return std::any_of(members.begin(), members.end(), [&](const auto& member) {
    return member.task.type == TaskType::kWorker &&
           member.state == MembershipTable::State::kAlive &&
           (!mirrored || member.task.index == server);
  });
}

absl::Status MemberAnswers::CheckDescribes(const Sender& sender,
                                           absl::Time now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckMember(sender, now));
  if (sender.task.type == TaskType::kWorker ||
      sender.task.type == TaskType::kPs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(sender.task.ToString(),
                   " describes no model; only workers and servers do"));
}

absl::Status MemberAnswers::Describe(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples, int64_t num_examples) {
  LOCKSTEP_RETURN_IF_ERROR(CheckModelSize(
      variables, options_.job.max_part_bytes, options_.job.partitioner));
  LOCKSTEP_RETURN_IF_ERROR(status_table_.Describe(variables, examples));
  settings_table_.KnowExamples(num_examples);
  settings_table_.KnowVariables(variables);
  return absl::OkStatus();
}

LeaveCause MemberAnswers::Believed(LeaveCause cause) const {
  const bool impossible =
      (cause == LeaveCause::kEndOfInput && options_.job.data.epochs == 0) ||
      (cause == LeaveCause::kNoRoom &&
       !AnyGrows(options_.job, status_table_.variables()));
  return impossible ? LeaveCause::kStopped : cause;
}

absl::Status MemberAnswers::Leave(const Sender& sender, LeaveCause cause,
                                  const std::string& reason,
                                  const std::optional<Progress>& progress,
                                  absl::Time now) {
  LOCKSTEP_RETURN_IF_ERROR(CheckJob(sender));
  // A chief that was started again may not know the member yet.
  LOCKSTEP_RETURN_IF_ERROR(
      members_.TakeOver(sender.task, sender.incarnation, now));
  return members_.Leave(sender.task, sender.incarnation, Believed(cause),
                        reason, progress.has_value() ? &*progress : nullptr,
                        now);
}

}  // namespace lockstep::chief
