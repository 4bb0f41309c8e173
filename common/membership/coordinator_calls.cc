#include "common/membership/coordinator_calls.h"

#include "common/membership/unreachable.h"
#include "common/rpc/channel.h"
#include "common/rpc/connection_advice.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"

namespace lockstep {

CoordinatorCalls::CoordinatorCalls(const std::string& address)
    : address_(address),
      channel_(MakeChannel(address)),
      stub_(v1::CoordinatorService::NewStub(channel_)),
      traces_(v1::TraceService::NewStub(channel_)) {}

void CoordinatorCalls::Prepare(absl::Duration deadline,
                               bool wait_for_connection,
                               grpc::ClientContext& context) {
  context.set_deadline(DeadlineIn(deadline));
  // In a process without a server only calls that wait drive the connection: a
  // call that fails at once would leave it unmade until the next call.
  context.set_wait_for_ready(wait_for_connection);
}

absl::Status CoordinatorCalls::ToStatus(const grpc::Status& status) const {
  return ExplainUnserved(FromGrpcStatus(status), address_);
}

absl::Status CoordinatorCalls::ReportTrace(
    const v1::ReportTraceRequest& request) {
  grpc::ClientContext context;
  Prepare(kDeadline, /*wait_for_connection=*/false, context);
  v1::ReportTraceResponse response;
  return ToStatus(traces_->ReportTrace(&context, request, &response));
}

std::string CoordinatorCalls::Trouble(const absl::Status& status) {
  // A call that waits for the connection does not have the reason for its
  // failure; one that does not wait has.
  if (!absl::IsDeadlineExceeded(status)) return std::string(status.message());
  v1::GetStatusResponse response;
  const absl::Status now =
      CallIfThere(&Stub::GetStatus, v1::GetStatusRequest(), response);
  // The chief answers after all: the first error is the one to report.
  if (!absl::IsUnavailable(now)) return std::string(status.message());
  const std::string advice = ConnectionAdvice(address_);
  if (!advice.empty()) return advice;
  return DescribeUnreachable(address_, now.message());
}

}  // namespace lockstep
