#include "chief/traces/trace_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/traces/job_limits.h"
#include "common/base/status_macros.h"
#include "common/process/process.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/status.h"
#include "common/trace/codec/trace_codec.h"
#include "common/wire/wire_codec.h"

namespace lockstep::chief {
namespace {

// Also if a worker hosts the chief: the worker is another task.
constexpr char kChiefTask[] = "chief 0";

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

TraceService::TraceService(std::string job_id, const JobConfig& job,
                           MembershipTable& members, TraceTable& table,
                           SpanRecorder& spans, const Clock& clock)
    : job_id_(std::move(job_id)),
      heartbeat_interval_(job.heartbeat_interval),
      limits_(LimitsOf(job)),
      members_(members),
      table_(table),
      spans_(spans),
      clock_(clock) {}

grpc::ServerUnaryReactor* TraceService::BeginTrace(
    grpc::CallbackServerContext* context, const v1::BeginTraceRequest*,
    v1::BeginTraceResponse* response) {
  std::vector<std::string> tasks = {kChiefTask};
  for (const MembershipTable::Member& member : members_.Members()) {
    // The evaluator takes no part in steps, and records no spans.
    const bool lives = member.state == MembershipTable::State::kAlive ||
                       members_.JoinsAgain(member, clock_.Now());
    if (!lives || member.task.type == TaskType::kEvaluator) continue;
    tasks.push_back(member.task.ToString());
  }
  // By then every live member has sent a heartbeat and received its answer.
  const absl::Duration wait = 2 * heartbeat_interval_;
  response->set_id(table_.Begin(tasks, clock_.Now() + wait));
  response->set_wait(absl::ToInt64Nanoseconds(wait));
  *response->mutable_limits() = ToProto(limits_);
  for (std::string& task : tasks) *response->add_tasks() = std::move(task);
  return Answer(context, absl::OkStatus());
}

void TraceService::ReportOwn(absl::Time now) {
  const auto wanted = table_.WantedFrom(kChiefTask, now);
  if (!wanted.has_value() || now < wanted->at) return;
  TaskTrace own{.task = kChiefTask, .host = HostName()};
  own.spans = spans_.Newest(wanted->max_spans);
  // Ignored: a trace that was begun meanwhile asks again.
  table_.Report(wanted->id, std::move(own), now).IgnoreError();
}

absl::Status TraceService::HandleReportTrace(
    const Caller& caller, const v1::ReportTraceRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Sender sender,
                            lockstep::FromProto(request.identity()));
  LOCKSTEP_RETURN_IF_ERROR(caller.CheckSpeaksFor(sender.task));
  if (sender.job_id != job_id_) {
    return absl::FailedPreconditionError(
        "identity.job_id is that of another job; this chief takes traces of "
        "its own");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(TaskTrace trace,
                            lockstep::FromProto(request.trace()));
  // The name by the identity, not the one that the sender claims.
  trace.task = sender.task.ToString();
  return table_.Report(request.id(), std::move(trace), clock_.Now());
}

grpc::ServerUnaryReactor* TraceService::ReportTrace(
    grpc::CallbackServerContext* context, const v1::ReportTraceRequest* request,
    v1::ReportTraceResponse*) {
  return Answer(context, HandleReportTrace(CallerOf(*context), *request));
}

absl::Status TraceService::HandleGetTrace(const v1::GetTraceRequest& request,
                                          v1::GetTraceResponse& response) {
  const absl::Time now = clock_.Now();
  ReportOwn(now);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<TaskTrace> trace,
                            table_.Get(request.id(), request.task(), now));
  if (trace.has_value()) *response.mutable_trace() = ToProto(*trace);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* TraceService::GetTrace(
    grpc::CallbackServerContext* context, const v1::GetTraceRequest* request,
    v1::GetTraceResponse* response) {
  return Answer(context, HandleGetTrace(*request, *response));
}

}  // namespace lockstep::chief
