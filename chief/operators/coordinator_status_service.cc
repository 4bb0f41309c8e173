// The part of CoordinatorService that reports the state of the job to
// operators, and receives the scores in it.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "chief/operators/coordinator_service.h"
#include "chief/operators/job_history_codec.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job/learning_rate.h"
#include "common/plan/figure.h"
#include "common/plan/number_tree.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep::chief {
namespace {

constexpr RoleSet kMemberRoles = Bit(Role::kChief) | Bit(Role::kPs) |
                                 Bit(Role::kWorker) | Bit(Role::kEvaluator);

v1::MemberState StateToProto(MembershipTable::State state) {
  switch (state) {
    case MembershipTable::State::kMissing:
      return v1::MEMBER_MISSING;
    case MembershipTable::State::kAlive:
      return v1::MEMBER_ALIVE;
    case MembershipTable::State::kDead:
      return v1::MEMBER_DEAD;
    case MembershipTable::State::kLeft:
      return v1::MEMBER_LEFT;
  }
  return v1::MEMBER_STATE_UNSPECIFIED;
}

// A pass of skip_gram has as many examples as its lines have words that are
// kept; a pass of any other model has as many as the job says. Where work is
// shared a pass stands for a micro-batch.
double ExamplesPerPass(const v1::GetStatusResponse& status,
                       const JobConfig& job) {
  double examples = 0;
  double passes = 0;
  for (const v1::MemberStatus& member : status.members()) {
    examples += static_cast<double>(member.progress().examples());
    passes += static_cast<double>(job.shares_work()
                                      ? member.progress().micro_batches()
                                      : member.progress().computed());
  }
  return passes > 0 ? examples / passes
                    : static_cast<double>(job.pass_batch_size());
}

std::string ExampleUnit(const ModelConfig& model) {
  return model.kind == "skip_gram" ? "words" : "examples";
}

v1::EvaluationStatus ScoreToProto(const StatusTable::Evaluation& score) {
  v1::EvaluationStatus proto;
  proto.set_global_step(score.step);
  proto.set_loss(score.loss);
  proto.set_accuracy(score.accuracy);
  if (score.auc.has_value()) proto.set_auc(*score.auc);
  *proto.mutable_figures() = ToProto(score.figures);
  return proto;
}

// Deaths, notices and waits.
void FillEvents(const StatusTable::View& view, absl::Time now,
                v1::GetStatusResponse& response) {
  for (const StatusTable::Death& death : view.deaths) {
    *response.add_deaths() = DeathToProto(death, now);
  }
  for (const StatusTable::Notice& notice : view.notices) {
    v1::Notice& told = *response.add_notices();
    told.set_number(notice.number);
    told.set_text(notice.text);
  }
  for (const StatusTable::Wait& wait : view.waits) {
    v1::WaitStatus& status = *response.add_waits();
    status.set_owner(wait.owner);
    status.set_waits_for(wait.waits_for);
    *status.mutable_since() = ToProto(now - wait.since);
  }
}

// With certificates, only members may see job ids and incarnations, which
// identify them in calls.
void HideIdentities(v1::GetStatusResponse& response) {
  response.clear_job_id();
  for (v1::MemberStatus& member : *response.mutable_members()) {
    member.clear_incarnation();
  }
}

// The mean loss of the workers that train; without one, of those that have
// left; without one, of the dead. The last loss of a worker that died or left
// long ago says nothing about the job as it is. 0 without any.
double JobLoss(absl::Span<const MembershipTable::Member> members) {
  using State = MembershipTable::State;
  for (const State state : {State::kAlive, State::kLeft, State::kDead}) {
    double sum = 0;
    int losses = 0;
    for (const MembershipTable::Member& member : members) {
      // A worker without a recent loss reports NaN, which would hide all
      // others.
      if (member.task.type != TaskType::kWorker || member.state != state ||
          !member.progress.HasLoss()) {
        continue;
      }
      sum += member.progress.loss;
      ++losses;
    }
    if (losses > 0) return sum / losses;
  }
  return 0;
}

void LogScore(const StatusTable::Evaluation& evaluation, int64_t examples) {
  if (!evaluation.figures.empty()) {
    std::string text;
    for (const NamedFigure& figure : evaluation.figures) {
      absl::StrAppendFormat(&text, "%s%s %.6g", text.empty() ? "" : ", ",
                            figure.name, figure.value);
    }
    spdlog::info("step {}: {}", evaluation.step, text);
    return;
  }
  spdlog::info("step {}: test accuracy {:.4f}, loss {:.4f}, {} examples{}",
               evaluation.step, evaluation.accuracy, evaluation.loss, examples,
               evaluation.auc.has_value()
                   ? absl::StrFormat(", AUC %.4f", *evaluation.auc)
                   : std::string());
}

}  // namespace

absl::Status CoordinatorService::HandleReportEvaluation(
    const Caller& caller, const v1::ReportEvaluationRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            MemberOf(caller, request.identity()));
  if (sender.task.type != TaskType::kEvaluator) {
    return absl::InvalidArgumentError(
        absl::StrCat(sender.task.ToString(),
                     " scores no checkpoints; only the evaluator does"));
  }
  const double accuracy = request.accuracy();
  // Refuses NaN as well.
  if (!(accuracy >= 0 && accuracy <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("accuracy is ", accuracy, "; it must be in [0, 1]"));
  }
  StatusTable::Evaluation evaluation{request.global_step(), request.loss(),
                                     accuracy};
  if (request.has_auc()) evaluation.auc = request.auc();
  if (!(evaluation.auc.value_or(0) >= 0 && evaluation.auc.value_or(0) <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("auc is ", *evaluation.auc, "; it must be in [0, 1]"));
  }
  evaluation.figures = FromProto(request.figures());
  LOCKSTEP_RETURN_IF_ERROR(CheckFigures(evaluation.figures));
  LOCKSTEP_RETURN_IF_ERROR(status_table_.Evaluated(evaluation));
  LogScore(evaluation, request.examples());
  return absl::OkStatus();
}

void CoordinatorService::FillMembers(absl::Time now,
                                     v1::GetStatusResponse& response) const {
  std::vector<MembershipTable::Member> members = members_.Members();
  std::stable_partition(members.begin(), members.end(), [](const auto& member) {
    return member.task.type == TaskType::kPs;  // come first in the answer
  });
  for (const MembershipTable::Member& member : members) {
    if (member.task.type == TaskType::kEvaluator &&
        member.state == MembershipTable::State::kMissing &&
        !options_.has_evaluator) {
      continue;
    }
    v1::MemberStatus& status = *response.add_members();
    status.set_task(member.task.ToString());
    status.set_state(members_.JoinsAgain(member, now)
                         ? v1::MEMBER_JOINING
                         : StateToProto(member.state));
    status.set_incarnation(member.incarnation);
    if (member.incarnation != 0) {
      *status.mutable_since_heartbeat() = ToProto(now - member.last_heartbeat);
    }
    if (member.load.has_value()) *status.mutable_load() = ToProto(*member.load);
    if (member.task.type == TaskType::kPs) continue;
    *status.mutable_progress() = ToProto(member.progress);
    if (member.task.type == TaskType::kEvaluator &&
        response.score_trouble().empty()) {
      response.set_score_trouble(member.progress.trouble);
    }
  }
  response.set_loss(JobLoss(members));
}

void CoordinatorService::HandleGetStatus(
    v1::GetStatusResponse& response) const {
  const absl::Time now = clock_.Now();
  const StatusTable::View view = status_table_.Get(now);
  response.set_job_name(options_.job.name);
  response.set_job_id(options_.job_id);
  response.set_state(static_cast<v1::JobState>(view.state));
  response.set_reason(view.reason);
  response.set_epoch(view.epoch);
  response.set_global_step(view.global_step);
  response.set_train_steps(options_.job.train_steps);
  response.set_last_checkpoint_step(view.last_checkpoint_step);
  if (view.last_checkpoint_step >= 0) {
    *response.mutable_last_checkpoint_age() =
        ToProto(now - view.last_checkpoint_at);
  }
  *response.mutable_training_time() = ToProto(view.training_time);
  *response.mutable_settings() = ToProto(view.settings);
  response.set_learning_rate(options_.job.learning_rate.base *
                             view.settings.learning_rate_scale);
  response.set_learning_rate_now(LearningRateInEffect(
      options_.job, view.settings.learning_rate_scale, view.global_step));
  if (view.evaluation.has_value()) {
    *response.mutable_evaluation() = ScoreToProto(*view.evaluation);
  }
  *response.mutable_losses() = LossesToProto(view.losses);
  response.set_checkpoint_trouble(view.checkpoint_trouble);
  response.set_checkpoint_directory(options_.job.checkpoint.directory);
  response.set_score_trouble(view.score_trouble);
  FillEvents(view, now, response);
  if (const auto security = OwnSecurity(); security != nullptr) {
    for (const std::string& trouble : security->Troubles()) {
      response.add_security_troubles(trouble);
    }
  }
  FillMembers(now, response);
  // After FillMembers(): the examples of a pass follow from the members'
  // progress.
  int passes = view.settings.replicas_to_aggregate;
  if (options_.job.shares_work()) {
    response.set_micro_batches_per_step(options_.job.micro_batches_per_step);
    response.set_micro_batches_per_push(
        BlockSizeOf(options_.job.micro_batches_per_step, passes));
    passes = options_.job.micro_batches_per_step;
  }
  response.set_examples_per_second(view.steps_per_second * passes *
                                   ExamplesPerPass(response, options_.job));
  response.set_example_unit(ExampleUnit(options_.job.model));
}

v1::GetStatusResponse CoordinatorService::StatusForOperators() const {
  v1::GetStatusResponse response;
  HandleGetStatus(response);
  if (OwnSecurity() != nullptr) HideIdentities(response);
  return response;
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest*,
    v1::GetStatusResponse* response) {
  HandleGetStatus(*response);
  if (!CallerOf(*context).HasOneOf(kMemberRoles)) HideIdentities(*response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace lockstep::chief
