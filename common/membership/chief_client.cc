#include "common/membership/chief_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/membership/chief_requests.h"
#include "common/membership/coordinator_answers.h"
#include "common/membership/coordinator_calls.h"
#include "common/membership/initial_values.h"
#include "common/membership/kept_messages.h"
#include "common/membership/trace_reporter.h"
#include "common/process/process.h"
#include "common/text/duration_text.h"
#include "common/wire/status_detail.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {
namespace {

using Stub = CoordinatorCalls::Stub;

}  // namespace

ChiefClient::ChiefClient(Options options)
    : options_(std::move(options)),
      calls_(std::make_unique<CoordinatorCalls>(options_.address)),
      traces_(std::make_unique<TraceReporter>(
          TraceReporter::Options{options_.task, options_.spans})),
      membership_({options_.address, options_.chief_wait}),
      kept_(std::make_unique<KeptMessages>()) {}

ChiefClient::~ChiefClient() { JoinHeartbeats(); }

Sender ChiefClient::Self() const {
  MutexLock lock(mutex_);
  return {membership_.job_id(), options_.task, membership_.incarnation()};
}

v1::Identity ChiefClient::Identity() const { return ToProto(Self()); }

absl::Status ChiefClient::TryRegister(v1::RegisterResponse& response) {
  bool again = false;
  {
    MutexLock lock(mutex_);
    again = membership_.was_member();
  }
  v1::RegisterRequest request = RegisterRequestOf(options_, again);
  *request.mutable_identity() = Identity();
  PassFaultPoint(FaultPoint::kMemberRegisterSend);
  const absl::Status status = calls_->Call(&Stub::Register, request, response,
                                           CoordinatorCalls::kRegisterDeadline);
  if (status.ok()) PassFaultPoint(FaultPoint::kMemberRegisterAnswered);
  return status;
}

absl::Status ChiefClient::RegisterUntilLetIn(v1::RegisterResponse& response) {
  using Next = Membership::Next;
  const absl::Time began = Now();
  absl::Time reported = began;
  while (true) {
    if (stopped()) return absl::CancelledError("stopped before registration");
    const absl::Status status = TryRegister(response);
    const absl::Time now = Now();
    Next next = Next::kTryAgain;
    absl::Duration limit;
    {
      MutexLock lock(mutex_);
      next = membership_.OnRegisterAnswer(status, NewestIncarnationOf(status),
                                          now);
      limit = membership_.registration_limit();
      if (next == Next::kTryWithNewer) {
        membership_.set_incarnation(
            DrawIncarnation(membership_.newest_known()));
      }
    }
    if (next == Next::kMember || next == Next::kRefused) return status;
    if (next == Next::kWaitedTooLong) {
      return absl::UnavailableError(absl::StrCat(
          "the chief at ", options_.address, " has not let this task in for ",
          absl::FormatDuration(limit), ": start it, or correct TF_CONFIG; ",
          calls_->Trouble(status)));
    }
    if (now - reported > Membership::kReportEvery) {
      reported = now;
      spdlog::warn("has waited {} for the chief at {}: {}",
                   DurationText(now - began), options_.address,
                   calls_->Trouble(status));
    }
    Pause();
  }
}

absl::StatusOr<ChiefClient::Registration> ChiefClient::Register() {
  // First: the old thread would send heartbeats as the new incarnation.
  JoinHeartbeats();
  {
    MutexLock lock(mutex_);
    membership_.BeginRegistration(Now());
    membership_.set_incarnation(DrawIncarnation(membership_.newest_known()));
    heartbeats_stop_ = false;
  }
  v1::RegisterResponse response;
  LOCKSTEP_RETURN_IF_ERROR(RegisterUntilLetIn(response));
  if (!response.taken_out().empty()) {
    return StoppedStatus(response.taken_out(), /*hold=*/true);
  }
  absl::StatusOr<JobConfig> job = JobOf(response);
  if (!job.ok()) {
    {
      MutexLock lock(mutex_);
      membership_.OnJobRefused(response.job_id());
    }
    // The chief counts on this task now, and would wait for it.
    Leave(LeaveCause::kCannotTakePart,
          absl::StrCat("failed: the chief's job: ", job.status().message()));
    return job.status();
  }
  Registration registration;
  registration.job = *std::move(job);
  registration.job_id = response.job_id();
  SetLogJob(registration.job.name);
  registration.num_workers = response.num_workers();
  registration.data_shard = response.data_shard();
  {
    MutexLock lock(mutex_);
    membership_.BeginHeartbeats(response.job_id(), registration.job.max_wait,
                                Now());
    registration.incarnation = membership_.incarnation();
    kept_->workers.assign(response.workers().begin(), response.workers().end());
    kept_->job_fingerprint = response.job_fingerprint();
  }
  spdlog::info("registered with the chief at {}, job {}", options_.address,
               registration.job_id);
  heartbeats_ =
      std::thread([this, interval = registration.job.heartbeat_interval] {
        Heartbeats(interval);
      });
  return registration;
}

absl::Status ChiefClient::CallUntilAnswered(
    absl::FunctionRef<absl::Status()> call) {
  while (!stopped() && !ended()) {
    const absl::Status status = call();
    if (!Membership::MayPass(status)) return Refused(status);
    Pause();
  }
  return absl::CancelledError("the job ended");
}

absl::Status ChiefClient::DescribeModel(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples, int64_t num_examples) {
  auto request = DescribeRequestOf(variables, examples, num_examples);
  *request.mutable_identity() = Identity();
  return CallUntilAnswered([&] {
    v1::DescribeModelResponse response;
    PassFaultPoint(FaultPoint::kWorkerDescribeSend);
    const absl::Status status =
        calls_->Call(&Stub::DescribeModel, request, response);
    if (status.ok()) {
      PassFaultPoint(FaultPoint::kWorkerDescribeAnswered);
      MutexLock lock(mutex_);
      model_ = variables;            // for PlanOf()
      kept_->description = request;  // for DescribeAgain()
    }
    return status;
  });
}

void ChiefClient::KnowModel(const std::vector<VariableSpec>& variables) {
  MutexLock lock(mutex_);
  kept_->description = DescribeRequestOf(variables, std::nullopt);
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

std::vector<VariableSpec> ChiefClient::DescribedModel() const {
  MutexLock lock(mutex_);
  return model_;
}

absl::Status ChiefClient::AwaitPlan(v1::GetPlanResponse& response,
                                    const InitialValues& values) {
  const absl::Time began = Now();
  absl::Time reported = began;
  while (!stopped() && !ended()) {
    v1::GetPlanRequest request;
    *request.mutable_identity() = Identity();
    PassFaultPoint(FaultPoint::kWorkerPlanSend);
    const absl::Status status = calls_->Call(&Stub::GetPlan, request, response);
    if (!status.ok() && !Membership::MayPass(status)) return Refused(status);
    if (status.ok() && response.ready()) return absl::OkStatus();
    if (status.ok() && response.values_wanted() && values) {
      const absl::Status sent =
          SendInitialValues(*calls_, Identity(), DescribedModel(), values,
                            [this] { return stopped() || ended(); });
      if (!sent.ok()) return Refused(sent);
    }
    if (const absl::Time now = Now();
        now - reported > Membership::kReportEvery) {
      reported = now;
      spdlog::info("has waited {} for the variables; the chief waits for {}",
                   DurationText(now - began),
                   status.ok() ? response.waiting_for() : "a connection");
    }
    Pause();
  }
  return absl::CancelledError("the job ended");
}

absl::StatusOr<Plan> ChiefClient::WaitForPlan(int num_servers,
                                              int64_t& global_step,
                                              const InitialValues& values) {
  v1::GetPlanResponse response;
  LOCKSTEP_RETURN_IF_ERROR(AwaitPlan(response, values));
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

absl::Status ChiefClient::ReportEvaluation(int64_t step, const Score& score) {
  v1::ReportEvaluationRequest request = ReportRequestOf(step, score);
  *request.mutable_identity() = Identity();
  return CallUntilAnswered([&] {
    v1::ReportEvaluationResponse response;
    return calls_->Call(&Stub::ReportEvaluation, request, response);
  });
}

bool ChiefClient::AskToStop(const std::string& reason) {
  v1::StopResponse response;
  // Fails at once without a connection: this process must end soon.
  const absl::Status status =
      calls_->CallIfThere(&Stub::Stop, StopRequestOf(Self(), reason), response);
  if (!status.ok()) {
    spdlog::warn("could not ask the chief to stop: {}",
                 std::string(status.message()));
  }
  return status.ok();
}

void ChiefClient::Leave(LeaveCause cause, const std::string& reason) {
  v1::LeaveRequest request = LeaveRequestOf(options_, cause, reason);
  *request.mutable_identity() = Identity();
  v1::LeaveResponse response;
  PassFaultPoint(FaultPoint::kMemberLeaveSend);
  // A chief that is away would hold up a process that wants to end.
  absl::Status status = calls_->CallIfThere(&Stub::Leave, request, response);
  while (MustLeaveAgain(status, cause) && !stopped()) {
    Pause();
    status = calls_->Call(&Stub::Leave, request, response);
  }
  PassFaultPoint(FaultPoint::kMemberLeaveAnswered);
  if (!status.ok()) {
    spdlog::info("could not say good-bye to the chief: {}",
                 std::string(status.message()));
  }
  JoinHeartbeats();  // only now: until then they keep the lease
}

bool ChiefClient::MustLeaveAgain(const absl::Status& status, LeaveCause cause) {
  MutexLock lock(mutex_);
  return membership_.OnLeaveAnswer(status, cause) ==
         Membership::AfterLeave::kTryAgain;
}

void ChiefClient::OnRefusedByServer(uint64_t newest) {
  MutexLock lock(mutex_);
  membership_.OnNewerIncarnation(newest);
  beat_now_ = true;
  changed_.SignalAll();
}

void ChiefClient::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

bool ChiefClient::ended() const {
  MutexLock lock(mutex_);
  return membership_.ended();
}

absl::Status ChiefClient::end() const {
  MutexLock lock(mutex_);
  return membership_.end();
}

bool ChiefClient::lease_lost() const {
  MutexLock lock(mutex_);
  return membership_.lease_lost();
}

bool ChiefClient::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

bool ChiefClient::state_is_spare() const {
  MutexLock lock(mutex_);
  return membership_.state_is_spare();
}

bool ChiefClient::job_is_training() const {
  MutexLock lock(mutex_);
  return membership_.job_is_training();
}

void ChiefClient::WaitUntil(absl::FunctionRef<bool()> over,
                            absl::Duration duration) {
  const absl::Time deadline = Now() + duration;
  while (!over()) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) return;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
}

bool ChiefClient::WaitForEnd(absl::Duration timeout) {
  MutexLock lock(mutex_);
  WaitUntil([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                mutex_) { return membership_.ended() || stopped_; },
            timeout);
  return membership_.ended();
}

void ChiefClient::Pause() {
  MutexLock lock(mutex_);
  WaitUntil([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                mutex_) { return stopped_ || heartbeats_stop_; },
            Membership::kRetryPause);
}

void ChiefClient::set_on_end(std::function<void()> on_end) {
  // Held during the call: the old function does not run after this returns.
  MutexLock lock(on_end_mutex_);
  on_end_ = std::move(on_end);
  if (on_end_ && ended()) on_end_();
}

void ChiefClient::CallOnEnd() {
  MutexLock lock(on_end_mutex_);
  if (on_end_) on_end_();
}

absl::Status ChiefClient::Refused(const absl::Status& status) {
  bool over = false;
  {
    MutexLock lock(mutex_);
    membership_.OnRefusal(status);
    over = membership_.ended();
    changed_.SignalAll();
  }
  if (over) CallOnEnd();  // without mutex_: it may call this object
  return status;
}

void ChiefClient::DescribeAgain() {
  v1::DescribeModelRequest request;
  {
    MutexLock lock(mutex_);
    request = kept_->description;
  }
  if (request.variables().empty()) return;
  *request.mutable_identity() = Identity();
  v1::DescribeModelResponse response;
  // If it fails, the answer to the next heartbeat will ask again.
  const absl::Status status =
      calls_->Call(&Stub::DescribeModel, request, response);
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

void ChiefClient::FillHeartbeat(v1::HeartbeatRequest& request) {
  request = HeartbeatRequestOf(options_);
  *request.mutable_identity() = Identity();
  *request.mutable_load() = ToProto(load_meter_.Measure(Now()));
  MutexLock lock(mutex_);
  beat_now_ = false;  // before the call: a later wish is another one
  kept_->Fill(request, Now());
}

void ChiefClient::OnAnswer(v1::HeartbeatResponse& response) {
  if (response.model_wanted()) DescribeAgain();
  if (response.leave() && options_.on_leave) options_.on_leave();
  MutexLock lock(mutex_);
  kept_->TakeHistory(response, Now());
  membership_.OnHeartbeat(AnswerOf(response), Now());
}

void ChiefClient::OnFailure(const absl::Status& status) {
  MutexLock lock(mutex_);
  kept_->history_wanted = true;  // by a chief that is started again
  membership_.OnFailedHeartbeat(status, Now());
  if (membership_.ended()) return;
  const auto silence = membership_.SilenceToReport(Now());
  if (!silence.has_value()) return;
  spdlog::warn("the chief at {} has been silent for {}; waiting",
               options_.address, DurationText(*silence));
}

bool ChiefClient::Beat() {
  v1::HeartbeatRequest request;
  FillHeartbeat(request);
  v1::HeartbeatResponse response;
  PassFaultPoint(FaultPoint::kMemberHeartbeatSend);
  const absl::Time sent = Now();
  const absl::Status status = calls_->Call(&Stub::Heartbeat, request, response);
  PassFaultPoint(FaultPoint::kMemberHeartbeatAnswered);
  if (status.ok()) {
    traces_->OnHeartbeat(response, sent, Now());
    OnAnswer(response);
  } else {
    OnFailure(status);
  }
  if (!ended()) return false;
  changed_.SignalAll();
  CallOnEnd();
  return true;
}

void ChiefClient::Heartbeats(absl::Duration interval) {
  PreferThisThread();  // a late heartbeat costs the lease
  absl::Time next = Now();
  while (!Rest(next - Now())) {
    if (Beat()) return;
    next = Now() + interval;
    Rest(std::min(traces_->due(), next) - Now());
    if (traces_->due() > Now()) continue;
    const absl::Status handed =
        calls_->ReportTrace(traces_->TakeReport(Identity()));
    if (!handed.ok()) spdlog::info("no trace handed in: {}", handed.ToString());
  }
}

bool ChiefClient::Rest(absl::Duration duration) {
  MutexLock lock(mutex_);
  WaitUntil([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                mutex_) { return heartbeats_stop_ || beat_now_; },
            duration);
  return heartbeats_stop_;
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
