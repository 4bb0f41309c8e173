#include "chief/operators/coordinator_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/operators/heartbeat_answer.h"
#include "chief/operators/job_history_codec.h"
#include "chief/operators/registration_answer.h"
#include "chief/traces/trace_demand.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/status.h"
#include "common/text/plain_text.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kRefusalEvery = absl::Seconds(1);  // in the log

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// True if the worker must send the initial values; asked while there is no
// plan.
bool AreValuesWanted(GivenValues* values, const Sender& sender,
                     const MembershipTable& members) {
  return values != nullptr && sender.task.type == TaskType::kWorker &&
         values->IsWantedFrom(sender.task.index, [&members](int worker) {
           return members.Get({TaskType::kWorker, worker}).state ==
                  MembershipTable::State::kAlive;
         });
}

absl::Status PutValues(GivenValues* values, const Sender& sender,
                       const v1::PutInitialValuesRequest& request) {
  if (values == nullptr || sender.task.type != TaskType::kWorker ||
      request.variable() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        sender.task.ToString(), " sent initial values for variable ",
        request.variable(), "; only workers give them, when GetPlan asks"));
  }
  return values->Write(sender.task.index,
                       static_cast<size_t>(request.variable()),
                       request.offset(), request.payload());
}

std::string StopReason(const v1::StopRequest& request) {
  return request.reason().empty() ? "asked to stop" : CutText(request.reason());
}

// OK unless the task is known to be of another job, or has been replaced.
absl::Status CheckMayStop(const TaskId& sender, const v1::StopRequest& request,
                          const std::string& job_id,
                          const MembershipTable& members) {
  if (!request.job_id().empty() && request.job_id() != job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("job_id is that of another job; ", sender.ToString(),
                     " cannot stop this one"));
  }
  if (request.incarnation() == 0) return absl::OkStatus();
  for (const MembershipTable::Member& member : members.Members()) {
    if (member.task != sender || member.incarnation <= request.incarnation()) {
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("a newer process is ", sender.ToString(),
                     " of the job, which goes on without this one"));
  }
  return absl::OkStatus();
}

}  // namespace

CoordinatorService::CoordinatorService(Options options,
                                       MembershipTable& members,
                                       StatusTable& status_table,
                                       SettingsTable& settings_table,
                                       const Clock& clock)
    : options_(std::move(options)),
      members_(members),
      status_table_(status_table),
      settings_table_(settings_table),
      clock_(clock),
      job_fingerprint_(FingerprintOf(options_.job)),
      answers_({options_.job_id, options_.job, options_.num_workers,
                kProtocolVersion, clock.Now(), job_fingerprint_},
               members, status_table, settings_table) {}

absl::StatusOr<Sender> CoordinatorService::SenderOf(
    const Caller& caller, const v1::Identity& identity) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, FromProto(identity));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  return sender;
}

absl::StatusOr<Sender> CoordinatorService::MemberOf(
    const Caller& caller, const v1::Identity& identity) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender, SenderOf(caller, identity));
  LOCKSTEP_RETURN_IF_ERROR(answers_.CheckMember(sender, clock_.Now()));
  return sender;
}

absl::Status CoordinatorService::Logged(const absl::Status& status) {
  // Other errors pass: the process repeats the call.
  if (!absl::IsFailedPrecondition(status)) return status;
  const absl::Time now = clock_.Now();
  MutexLock lock(mutex_);
  if (refusal_ != status.message() && now - refused_at_ >= kRefusalEvery) {
    refusal_ = std::string(status.message());
    refused_at_ = now;
    spdlog::warn("refused: {}", refusal_);
  }
  return status;
}

absl::Status CoordinatorService::HandleRegister(
    const Caller& caller, const v1::RegisterRequest& request,
    v1::RegisterResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            SenderOf(caller, request.identity()));
  const MemberAnswers::Registration registration{sender,
                                                 request.protocol_version(),
                                                 request.program_version(),
                                                 request.expected_job(),
                                                 request.again(),
                                                 request.gpus()};
  LOCKSTEP_RETURN_IF_ERROR(Logged(answers_.CheckIsMeant(registration)));
  const auto answer = answers_.Register(registration, clock_.Now());
  LOCKSTEP_RETURN_IF_ERROR(Logged(answer.status()));
  const MemberAnswers::Registered& registered = *answer;
  if (!registered.taken_out.empty()) {
    response.set_taken_out(registered.taken_out);
    return absl::OkStatus();
  }
  if (registered.is_new) {
    spdlog::info("{} registered, incarnation {}", sender.task.ToString(),
                 sender.incarnation);
  }
  response.set_job_id(options_.job_id);
  response.set_job_fingerprint(job_fingerprint_);
  FillJob(registered.job, response);
  return absl::OkStatus();
}

absl::Status CoordinatorService::HandleDescribeModel(
    const Caller& caller, const v1::DescribeModelRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            SenderOf(caller, request.identity()));
  LOCKSTEP_RETURN_IF_ERROR(answers_.CheckDescribes(sender, clock_.Now()));
  std::vector<VariableSpec> variables;
  for (const v1::VariableDescription& proto : request.variables()) {
    LOCKSTEP_ASSIGN_OR_RETURN(VariableSpec variable, FromProto(proto));
    variables.push_back(std::move(variable));
  }
  std::optional<ExampleShape> examples;
  if (request.has_examples()) {
    LOCKSTEP_ASSIGN_OR_RETURN(examples, FromProto(request.examples()));
  }
  return answers_.Describe(variables, examples, request.num_examples());
}

absl::Status CoordinatorService::HandleGetPlan(
    const Caller& caller, const v1::GetPlanRequest& request,
    v1::GetPlanResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            MemberOf(caller, request.identity()));
  const StatusTable::View view = status_table_.Get(clock_.Now());
  response.set_global_step(view.global_step);
  const std::optional<Plan> plan = status_table_.plan();
  if (!plan.has_value()) {
    response.set_values_wanted(
        AreValuesWanted(options_.given_values, sender, members_));
    response.set_waiting_for(view.waits.empty() ? "the chief"
                                                : view.waits.front().waits_for);
    return absl::OkStatus();
  }
  response.set_ready(true);
  if (const std::optional<ExampleShape> examples = status_table_.examples();
      examples.has_value()) {
    *response.mutable_examples() = ToProto(*examples);
  }
  response.set_mirrored(plan->mirrored);
  for (const VariableSpec& variable : plan->variables) {
    *response.add_variables() = ToProto(variable);
  }
  for (const Part& part : plan->parts) {
    *response.add_parts() = ToProto(part);
  }
  return absl::OkStatus();
}

absl::Status CoordinatorService::HandlePutInitialValues(
    const Caller& caller, const v1::PutInitialValuesRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            MemberOf(caller, request.identity()));
  return PutValues(options_.given_values, sender, request);
}

absl::Status CoordinatorService::HandleHeartbeat(
    const Caller& caller, const v1::HeartbeatRequest& request,
    v1::HeartbeatResponse& response) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            SenderOf(caller, request.identity()));
  MemberAnswers::Heartbeat heartbeat{sender, request.protocol_version()};
  if (request.has_progress()) {
    heartbeat.progress = FromProto(request.progress());
  }
  if (request.has_load()) heartbeat.load = FromProto(request.load());
  heartbeat.gpus = request.gpus();
  heartbeat.workers.assign(request.workers().begin(), request.workers().end());
  heartbeat.job_fingerprint = request.job_fingerprint();
  LOCKSTEP_ASSIGN_OR_RETURN(const MemberAnswers::Heard heard,
                            answers_.Hear(heartbeat, clock_.Now()));
  FillHeard(heard, response);
  if (sender.task.type == TaskType::kPs) ExchangeHistory(request, response);
  if (options_.traces != nullptr) {
    AddTraceDemand(*options_.traces, sender.task, clock_, response);
  }
  return absl::OkStatus();
}

void CoordinatorService::ExchangeHistory(const v1::HeartbeatRequest& request,
                                         v1::HeartbeatResponse& response) {
  const absl::Time now = clock_.Now();
  if (!status_table_.WantsHistory(now)) {
    *response.mutable_history() =
        HistoryToProto(status_table_.GetHistory(now), now);
  } else if (request.has_history()) {
    status_table_.Restore(HistoryFromProto(request.history(), now));
  } else {
    response.set_history_wanted(true);
  }
}

absl::Status CoordinatorService::HandleLeave(const Caller& caller,
                                             const v1::LeaveRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(Sender sender,
                            SenderOf(caller, request.identity()));
  std::optional<Progress> progress;
  if (request.has_progress()) progress = FromProto(request.progress());
  const std::string reason = CutText(request.reason());
  const bool repeated =
      members_.Get(sender.task).state == MembershipTable::State::kLeft;
  const absl::Status left = answers_.Leave(sender, FromProto(request.cause()),
                                           reason, progress, clock_.Now());
  // A member may repeat the call without end. A worker whose input ended has
  // left, although it must repeat the call until the servers know.
  if (!repeated &&
      members_.Get(sender.task).state == MembershipTable::State::kLeft) {
    spdlog::info("{} left: {}", sender.task.ToString(), reason);
  }
  return left;
}

grpc::ServerUnaryReactor* CoordinatorService::Register(
    grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
    v1::RegisterResponse* response) {
  PassFaultPoint(FaultPoint::kChiefRegisterReceived);
  const absl::Status status =
      HandleRegister(CallerOf(*context), *request, *response);
  PassFaultPoint(FaultPoint::kChiefRegisterAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::DescribeModel(
    grpc::CallbackServerContext* context,
    const v1::DescribeModelRequest* request, v1::DescribeModelResponse*) {
  PassFaultPoint(FaultPoint::kChiefDescribeReceived);
  const absl::Status status = HandleDescribeModel(CallerOf(*context), *request);
  PassFaultPoint(FaultPoint::kChiefDescribeAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::GetPlan(
    grpc::CallbackServerContext* context, const v1::GetPlanRequest* request,
    v1::GetPlanResponse* response) {
  PassFaultPoint(FaultPoint::kChiefPlanReceived);
  const absl::Status status =
      HandleGetPlan(CallerOf(*context), *request, *response);
  PassFaultPoint(FaultPoint::kChiefPlanAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::PutInitialValues(
    grpc::CallbackServerContext* context,
    const v1::PutInitialValuesRequest* request, v1::PutInitialValuesResponse*) {
  PassFaultPoint(FaultPoint::kChiefValuesReceived);
  const absl::Status status =
      HandlePutInitialValues(CallerOf(*context), *request);
  PassFaultPoint(FaultPoint::kChiefValuesAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Heartbeat(
    grpc::CallbackServerContext* context, const v1::HeartbeatRequest* request,
    v1::HeartbeatResponse* response) {
  PassFaultPoint(FaultPoint::kChiefHeartbeatReceived);
  NoteExpiryOf(*context);
  const absl::Status status =
      HandleHeartbeat(CallerOf(*context), *request, *response);
  PassFaultPoint(FaultPoint::kChiefHeartbeatAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(
    grpc::CallbackServerContext* context, const v1::LeaveRequest* request,
    v1::LeaveResponse*) {
  PassFaultPoint(FaultPoint::kChiefLeaveReceived);
  const absl::Status status = HandleLeave(CallerOf(*context), *request);
  PassFaultPoint(FaultPoint::kChiefLeaveAnswering);
  return Answer(context, status);
}

grpc::ServerUnaryReactor* CoordinatorService::ReportEvaluation(
    grpc::CallbackServerContext* context,
    const v1::ReportEvaluationRequest* request, v1::ReportEvaluationResponse*) {
  return Answer(context, HandleReportEvaluation(CallerOf(*context), *request));
}

absl::StatusOr<bool> CoordinatorService::StopsJob(
    const Caller& caller, const v1::StopRequest& request) {
  if (request.hold() && !caller.HasOneOf(Bit(Role::kSteerer))) {
    return absl::PermissionDeniedError(
        "only operator/steer may hold a job that it stops; leave out hold");
  }
  if (request.task_type().empty()) return true;
  LOCKSTEP_ASSIGN_OR_RETURN(const TaskType type,
                            ParseTaskType(request.task_type()));
  const TaskId sender{type, request.task_index()};
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckMayStop(sender, request, options_.job_id, members_));
  if (type != TaskType::kPs || sender.index <= 0) return true;
  if (!options_.job.has_elastic_mirrors()) return true;
  if (farewells_.Take(clock_.Now())) {
    spdlog::info("{} ends, and the job goes on: {}", sender.ToString(),
                 StopReason(request));
  }
  return false;
}

grpc::ServerUnaryReactor* CoordinatorService::Stop(
    grpc::CallbackServerContext* context, const v1::StopRequest* request,
    v1::StopResponse*) {
  const absl::StatusOr<bool> stops = StopsJob(CallerOf(*context), *request);
  if (stops.ok() && *stops) {
    options_.on_stop(StopReason(*request), request->hold());
  }
  return Answer(context, stops.status());
}

grpc::ServerUnaryReactor* CoordinatorService::Checkpoint(
    grpc::CallbackServerContext* context, const v1::CheckpointRequest*,
    v1::CheckpointResponse* response) {
  response->set_global_step(status_table_.Get(clock_.Now()).global_step);
  return Answer(context, settings_table_.RequestCheckpoint());
}

absl::Status CoordinatorService::HandleChangeSettings(
    const v1::ChangeSettingsRequest& request,
    v1::ChangeSettingsResponse& response) {
  SettingsChange change;
  if (request.has_replicas_to_aggregate()) {
    change.replicas_to_aggregate = request.replicas_to_aggregate();
  }
  if (request.has_learning_rate()) {
    change.learning_rate = request.learning_rate();
  }
  if (request.has_paused()) change.paused = request.paused();
  if (request.has_remove_worker()) {
    change.remove_worker = request.remove_worker();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t revision,
                            settings_table_.Change(change));
  response.set_revision(revision);
  if (!change.remove_worker.has_value()) return absl::OkStatus();
  // A worker that is away has no pass to finish, so it is taken out at once.
  // The next process of a dead one is told so: its supervisor may start it.
  const TaskId task{TaskType::kWorker, *change.remove_worker};
  const MembershipTable::State state = members_.Get(task).state;
  if (state != MembershipTable::State::kAlive) {
    settings_table_.Leave(task.index, state == MembershipTable::State::kDead
                                          ? SettingsTable::WhyOut::kIfAsked
                                          : SettingsTable::WhyOut::kLeft);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* CoordinatorService::ChangeSettings(
    grpc::CallbackServerContext* context,
    const v1::ChangeSettingsRequest* request,
    v1::ChangeSettingsResponse* response) {
  return Answer(context, HandleChangeSettings(*request, *response));
}

}  // namespace lockstep::chief
