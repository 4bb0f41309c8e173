#include "common/membership/chief_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/job/codec/job_config_codec.h"
#include "common/membership/incarnation.h"
#include "common/membership/unreachable.h"
#include "common/process/process.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/text/plain_text.h"
#include "common/wire/status_detail.h"
#include "grpcpp/client_context.h"

namespace lockstep {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(2);
// Bounds how long Stop() is overheard.
constexpr absl::Duration kRegisterDeadline = absl::Seconds(1);
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kReportEvery = absl::Seconds(5);
constexpr absl::Duration kSilenceUnit = absl::Milliseconds(100);

void Prepare(grpc::ClientContext& context,
             absl::Duration deadline = kCallDeadline) {
  context.set_deadline(DeadlineIn(deadline));
  // In a process without a server only waiting calls drive the connection: one
  // that fails at once would leave it to be made when the next call comes.
  context.set_wait_for_ready(true);
}

// For calls that are worth something only to a chief that is there.
void PrepareToFail(grpc::ClientContext& context) {
  Prepare(context);
  context.set_wait_for_ready(false);
}

bool Transient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

ChiefClient::ChiefClient(Options options)
    : options_(std::move(options)),
      channel_(MakeChannel(options_.address)),
      stub_(v1::CoordinatorService::NewStub(channel_)) {}

ChiefClient::~ChiefClient() { JoinHeartbeats(); }

v1::Identity ChiefClient::Identity() const {
  MutexLock lock(mutex_);
  return ToProto(Sender{job_id_, options_.task, incarnation_});
}

absl::Status ChiefClient::TryRegister(v1::RegisterResponse& response) {
  grpc::ClientContext context;
  Prepare(context, kRegisterDeadline);
  v1::RegisterRequest request;
  *request.mutable_identity() = Identity();
  request.set_protocol_version(kProtocolVersion);
  request.set_program_version("0.1.0");
  request.set_address(options_.own_address);
  request.set_expected_job(options_.expected_job);
  request.set_again(was_member_);
  PassFaultPoint(FaultPoint::kMemberRegisterSend);
  const grpc::Status status = stub_->Register(&context, request, &response);
  if (status.ok()) PassFaultPoint(FaultPoint::kMemberRegisterAnswered);
  return FromGrpcStatus(status);
}

std::string ChiefClient::Trouble(const absl::Status& status) {
  // A call that waits for the connection knows only that it came to nothing.
  if (!absl::IsDeadlineExceeded(status)) return std::string(status.message());
  grpc::ClientContext context;
  PrepareToFail(context);
  v1::GetStatusResponse response;
  const absl::Status now = FromGrpcStatus(
      stub_->GetStatus(&context, v1::GetStatusRequest(), &response));
  if (!absl::IsUnavailable(now)) return std::string(status.message());
  return DescribeUnreachable(options_.address, now.message());
}

absl::Status ChiefClient::RegisterUntilLetIn(v1::RegisterResponse& response) {
  const absl::Duration limit = was_member_ ? max_wait_ : options_.chief_wait;
  const absl::Time began = Now();
  absl::Time reported = began;
  while (true) {
    if (stopped()) return absl::CancelledError("stopped before registration");
    const absl::Status status = TryRegister(response);
    if (status.ok()) return status;
    if (NewestIncarnationOf(status) > 0) {
      OnNewerIncarnation(NewestIncarnationOf(status));
      MutexLock lock(mutex_);
      incarnation_ = DrawIncarnation(newest_known_);
    } else if (!Transient(status)) {
      return status;
    }
    if (Now() - began >= limit) {
      return absl::UnavailableError(absl::StrCat(
          "the chief at ", options_.address, " has not let this task in for ",
          absl::FormatDuration(limit), ": start it, or correct TF_CONFIG; ",
          Trouble(status)));
    }
    if (Now() - reported > kReportEvery) {
      reported = Now();
      spdlog::info(
          "waiting for the chief at {} since {}: {}", options_.address,
          absl::FormatDuration(absl::Trunc(reported - began, kSilenceUnit)),
          Trouble(status));
    }
    Pause(kRetryPause);
  }
}

absl::StatusOr<ChiefClient::Membership> ChiefClient::Register() {
  JoinHeartbeats();
  {
    MutexLock lock(mutex_);
    job_id_.clear();
    incarnation_ = DrawIncarnation(newest_known_);
    ended_ = false;
    lease_lost_ = false;
    heartbeats_stop_ = false;
  }
  v1::RegisterResponse response;
  LOCKSTEP_RETURN_IF_ERROR(RegisterUntilLetIn(response));
  if (!response.taken_out().empty()) {
    return StoppedStatus(response.taken_out(), /*hold=*/true);
  }
  was_member_ = true;
  Membership membership;
  LOCKSTEP_ASSIGN_OR_RETURN(membership.job, FromProto(response.job()));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(membership.job));
  membership.job_id = response.job_id();
  SetLogJob(membership.job.name);
  membership.num_workers = response.num_workers();
  membership.data_shard = response.data_shard();
  {
    MutexLock lock(mutex_);
    job_id_ = response.job_id();
    membership.incarnation = incarnation_;
  }
  spdlog::info("registered with the chief at {}, job {}", options_.address,
               membership.job_id);
  max_wait_ = membership.job.max_wait;
  heartbeats_ =
      std::thread([this, interval = membership.job.heartbeat_interval] {
        Heartbeats(interval);
      });
  return membership;
}

absl::Status ChiefClient::DescribeModel(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples) {
  v1::DescribeModelRequest request;
  *request.mutable_identity() = Identity();
  for (const VariableSpec& variable : variables) {
    *request.add_variables() = ToProto(variable);
  }
  if (examples.has_value()) *request.mutable_examples() = ToProto(*examples);
  while (!stopped() && !ended()) {
    grpc::ClientContext context;
    Prepare(context);
    v1::DescribeModelResponse response;
    PassFaultPoint(FaultPoint::kWorkerDescribeSend);
    const absl::Status status =
        FromGrpcStatus(stub_->DescribeModel(&context, request, &response));
    if (status.ok()) {
      PassFaultPoint(FaultPoint::kWorkerDescribeAnswered);
      MutexLock lock(mutex_);
      model_ = variables;
      description_ = request;
    }
    if (!Transient(status)) return Refused(status);
    Pause(kRetryPause);
  }
  return absl::CancelledError("the job ended");
}

absl::StatusOr<Plan> ChiefClient::PlanOf(const v1::GetPlanResponse& response,
                                         int num_servers) {
  LOCKSTEP_ASSIGN_OR_RETURN(Plan plan, PlanFromProto(response, num_servers));
  if (response.global_step() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chief's plan is of step ", response.global_step(),
                     "; it must be 0 or more"));
  }
  MutexLock lock(mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckPlan(plan, model_));
  return plan;
}

absl::Status ChiefClient::AwaitPlan(v1::GetPlanResponse& response) {
  const absl::Time began = Now();
  absl::Time reported = began;
  while (!stopped() && !ended()) {
    grpc::ClientContext context;
    Prepare(context);
    v1::GetPlanRequest request;
    *request.mutable_identity() = Identity();
    PassFaultPoint(FaultPoint::kWorkerPlanSend);
    const absl::Status status =
        FromGrpcStatus(stub_->GetPlan(&context, request, &response));
    if (!status.ok() && !Transient(status)) return Refused(status);
    if (status.ok() && response.ready()) return absl::OkStatus();
    if (Now() - reported > kReportEvery) {
      reported = Now();
      spdlog::info(
          "waiting for the variables since {}; the chief waits for {}",
          absl::FormatDuration(absl::Trunc(reported - began, kSilenceUnit)),
          status.ok() ? response.waiting_for() : "a connection");
    }
    Pause(kRetryPause);
  }
  return absl::CancelledError("the job ended");
}

absl::StatusOr<Plan> ChiefClient::WaitForPlan(int num_servers,
                                              int64_t& global_step) {
  v1::GetPlanResponse response;
  LOCKSTEP_RETURN_IF_ERROR(AwaitPlan(response));
  PassFaultPoint(FaultPoint::kWorkerPlanAnswered);
  global_step = response.global_step();
  return PlanOf(response, num_servers);
}

absl::StatusOr<std::optional<ExampleShape>> ChiefClient::WaitForExamples() {
  v1::GetPlanResponse response;
  LOCKSTEP_RETURN_IF_ERROR(AwaitPlan(response));
  if (!response.has_examples()) return std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(const ExampleShape examples,
                            FromProto(response.examples()));
  return examples;
}

absl::Status ChiefClient::ReportEvaluation(int64_t step, double loss,
                                           double accuracy, int64_t examples,
                                           std::optional<double> auc) {
  v1::ReportEvaluationRequest request;
  *request.mutable_identity() = Identity();
  request.set_global_step(step);
  request.set_loss(loss);
  request.set_accuracy(accuracy);
  request.set_examples(examples);
  if (auc.has_value()) request.set_auc(*auc);
  while (!stopped() && !ended()) {
    grpc::ClientContext context;
    Prepare(context);
    v1::ReportEvaluationResponse response;
    const absl::Status status =
        FromGrpcStatus(stub_->ReportEvaluation(&context, request, &response));
    if (!Transient(status)) return Refused(status);
    Pause(kRetryPause);
  }
  return absl::CancelledError("the job ended");
}

void ChiefClient::AskToStop(const std::string& reason) {
  grpc::ClientContext context;
  PrepareToFail(context);
  v1::StopRequest request;
  request.set_reason(absl::StrCat(options_.task.ToString(), ": ", reason));
  v1::StopResponse response;
  const grpc::Status status = stub_->Stop(&context, request, &response);
  if (!status.ok()) {
    spdlog::warn("could not ask the chief to stop: {}", status.error_message());
  }
}

void ChiefClient::Leave(LeaveCause cause, const std::string& reason) {
  v1::LeaveRequest request;
  *request.mutable_identity() = Identity();
  request.set_cause(ToProto(cause));
  request.set_reason(reason);
  if (options_.progress)
    *request.mutable_progress() = ToProto(options_.progress());
  grpc::ClientContext context;
  PrepareToFail(context);
  v1::LeaveResponse response;
  PassFaultPoint(FaultPoint::kMemberLeaveSend);
  const grpc::Status status = stub_->Leave(&context, request, &response);
  PassFaultPoint(FaultPoint::kMemberLeaveAnswered);
  if (!status.ok()) {
    spdlog::info("could not say good-bye to the chief: {}",
                 status.error_message());
  }
  JoinHeartbeats();
}

void ChiefClient::OnNewerIncarnation(uint64_t newest) {
  MutexLock lock(mutex_);
  if (newest < kMaxIncarnation) newest_known_ = std::max(newest_known_, newest);
}

void ChiefClient::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

bool ChiefClient::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

absl::Status ChiefClient::end() const {
  MutexLock lock(mutex_);
  return end_;
}

bool ChiefClient::lease_lost() const {
  MutexLock lock(mutex_);
  return lease_lost_;
}

bool ChiefClient::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

bool ChiefClient::WaitForEnd(absl::Duration timeout) {
  const absl::Time deadline = Now() + timeout;
  MutexLock lock(mutex_);
  while (!ended_ && !stopped_) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
  return ended_;
}

void ChiefClient::set_on_end(std::function<void()> on_end) {
  MutexLock lock(on_end_mutex_);
  on_end_ = std::move(on_end);
  if (on_end_ && ended()) on_end_();
}

void ChiefClient::Pause(absl::Duration duration) {
  const absl::Time deadline = Now() + duration;
  MutexLock lock(mutex_);
  while (!stopped_ && !heartbeats_stop_) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) break;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
}

void ChiefClient::End(const absl::Status& status, bool lease_lost) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    end_ = status;
    lease_lost_ = lease_lost;
    changed_.SignalAll();
  }
  MutexLock lock(on_end_mutex_);
  if (on_end_) on_end_();
}

absl::Status ChiefClient::Refused(const absl::Status& status) {
  if (absl::IsAborted(status)) {
    End(absl::UnavailableError(status.message()), /*lease_lost=*/true);
  }
  return status;
}

bool ChiefClient::OnSilence() {
  const absl::Time now = Now();
  const std::string silence =
      absl::FormatDuration(absl::Trunc(now - last_answer_, kSilenceUnit));
  if (now - last_answer_ >= max_wait_) {
    End(absl::UnavailableError(absl::StrCat("the chief at ", options_.address,
                                            " is gone: no answer for ",
                                            silence)));
    return true;
  }
  if (now - last_answer_ > kCallDeadline && now - said_ > kReportEvery) {
    said_ = now;
    spdlog::warn("the chief at {} has been silent for {}; waiting",
                 options_.address, silence);
  }
  return false;
}

void ChiefClient::DescribeAgain() {
  v1::DescribeModelRequest request;
  {
    MutexLock lock(mutex_);
    request = description_;
  }
  if (request.variables().empty()) return;
  *request.mutable_identity() = Identity();
  grpc::ClientContext context;
  Prepare(context);
  v1::DescribeModelResponse response;
  // If it fails, the answer to the next heartbeat will ask again.
  const grpc::Status status =
      stub_->DescribeModel(&context, request, &response);
  if (!status.ok()) spdlog::warn("{}", status.error_message());
}

v1::JobHistory ChiefClient::HistoryNow() const {
  v1::JobHistory history = *history_;
  const absl::Duration older = Now() - history_at_;
  *history.mutable_training_time() =
      ToProto(FromProto(history.training_time()) + older);
  for (v1::DeathStatus& death : *history.mutable_deaths()) {
    *death.mutable_since() = ToProto(FromProto(death.since()) + older);
  }
  return history;
}

bool ChiefClient::Beat() {
  v1::HeartbeatRequest request;
  *request.mutable_identity() = Identity();
  request.set_protocol_version(kProtocolVersion);
  if (history_wanted_ && history_.has_value()) {
    *request.mutable_history() = HistoryNow();
  }
  if (options_.progress)
    *request.mutable_progress() = ToProto(options_.progress());
  grpc::ClientContext context;
  Prepare(context);
  v1::HeartbeatResponse response;
  PassFaultPoint(FaultPoint::kMemberHeartbeatSend);
  const absl::Status status =
      FromGrpcStatus(stub_->Heartbeat(&context, request, &response));
  PassFaultPoint(FaultPoint::kMemberHeartbeatAnswered);
  if (Transient(status)) return OnSilence();
  if (!status.ok()) {
    // Whoever has been replaced is not to come back.
    const bool replaced = absl::IsAlreadyExists(status);
    End(replaced ? status : absl::UnavailableError(status.message()),
        absl::IsAborted(status));
    return true;
  }
  last_answer_ = Now();
  history_wanted_ = response.history_wanted();
  if (response.has_history()) {
    history_ = std::move(*response.mutable_history());
    history_at_ = last_answer_;
  }
  job_is_training_ = response.state() == v1::JOB_TRAINING;
  state_saved_ = response.state_saved();
  if (response.model_wanted()) DescribeAgain();
  if (response.leave() && options_.on_leave) options_.on_leave();
  switch (response.state()) {
    case v1::JOB_DONE:
      End(absl::OkStatus());
      return true;
    case v1::JOB_STOPPED:
      End(StoppedStatus(CutText(response.reason()), response.hold()));
      return true;
    case v1::JOB_FAILED:
      End(absl::AbortedError(CutText(response.reason())));
      return true;
    default:
      return false;
  }
}

void ChiefClient::Heartbeats(absl::Duration interval) {
  PreferThisThread();
  last_answer_ = Now();
  while (true) {
    {
      MutexLock lock(mutex_);
      if (heartbeats_stop_) return;
    }
    if (Beat()) return;
    const absl::Time deadline = Now() + interval;
    MutexLock lock(mutex_);
    while (!heartbeats_stop_) {
      const absl::Duration left = deadline - Now();
      if (left <= absl::ZeroDuration()) break;
      changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
    }
  }
}

void ChiefClient::JoinHeartbeats() {
  {
    MutexLock lock(mutex_);
    heartbeats_stop_ = true;
    changed_.SignalAll();
  }
  if (heartbeats_.joinable()) heartbeats_.join();
}

}  // namespace lockstep
