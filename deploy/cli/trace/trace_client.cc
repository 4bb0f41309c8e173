#include "deploy/cli/trace/trace_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/trace/codec/trace_codec.h"
#include "deploy/cli/status/coordinator_client.h"
#include "deploy/cli/text/text_format.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/trace.grpc.pb.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kPollEvery = absl::Milliseconds(50);

using Stub = v1::TraceService::Stub;

template <typename Request, typename Response>
absl::Status Call(Stub& stub, const std::string& address,
                  grpc::Status (Stub::*method)(grpc::ClientContext*,
                                               const Request&, Response*),
                  const Request& request, Response& response,
                  absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(timeout));
  context.set_wait_for_ready(true);
  // A call without an error stays one: absl::Status drops the text of kOk.
  return ExplainCall((stub.*method)(&context, request, &response), address,
                     timeout);
}

// Tasks that hand their spans in `wait` after the trace has begun would all be
// silent by the end: it comes `patience` after a sleep of at most as long.
absl::Status CheckWait(const std::string& address, absl::Duration wait,
                       absl::Duration patience) {
  if (wait < 2 * patience) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the chief at ", address, ": the tasks hand their spans in after ",
      absl::FormatDuration(wait),
      ", twice the job's heartbeat_interval, and --timeout is ",
      absl::FormatDuration(patience), "; give --timeout ",
      absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1))), " or more"));
}

}  // namespace

absl::StatusOr<JobTrace> CollectTrace(const std::string& address,
                                      absl::Duration patience) {
  const std::unique_ptr<Stub> stub =
      v1::TraceService::NewStub(MakeChannel(address));
  v1::BeginTraceResponse begun;
  LOCKSTEP_RETURN_IF_ERROR(Call(*stub, address, &Stub::BeginTrace,
                                v1::BeginTraceRequest(), begun, patience));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckWait(address, absl::Nanoseconds(begun.wait()), patience));
  // The time comes from another process, and must not hold this one up.
  const absl::Duration wait = std::clamp(absl::Nanoseconds(begun.wait()),
                                         absl::ZeroDuration(), patience);
  absl::SleepFor(wait);
  const absl::Time deadline = Clock::Real().Now() + patience;
  JobTrace trace;
  trace.limits = lockstep::FromProto(begun.limits());
  for (const std::string& task : begun.tasks()) {
    v1::GetTraceRequest request;
    request.set_id(begun.id());
    request.set_task(task);
    v1::GetTraceResponse response;
    while (true) {
      LOCKSTEP_RETURN_IF_ERROR(
          Call(*stub, address, &Stub::GetTrace, request, response, patience));
      // The deadline is that of all tasks together; each of them is asked at
      // least once.
      if (response.has_trace() || Clock::Real().Now() > deadline) break;
      absl::SleepFor(kPollEvery);
    }
    if (!response.has_trace()) {
      trace.silent.push_back(Printable(task));
      continue;
    }
    absl::StatusOr<TaskTrace> one = lockstep::FromProto(response.trace());
    if (!one.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the chief at ", address, ": ", one.status().message()));
    }
    trace.tasks.push_back(*std::move(one));
  }
  return trace;
}

}  // namespace lockstep::cli
