#ifndef LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_CALLS_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_CALLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/coordinator.grpc.pb.h"
#include "lockstep/v1/trace.grpc.pb.h"

namespace lockstep {

// CoordinatorCalls makes one call at a time to a chief and returns its status.
// Private to common/membership.
//
// Threads: safe to share.
// Errors:  as CoordinatorService; kUnavailable and kDeadlineExceeded if it
//          does not answer.
class CoordinatorCalls {
 public:
  using Stub = v1::CoordinatorService::Stub;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);

  // The deadlines of calls: that of a registration is shorter than that of all
  // others, so that ChiefClient::Stop() takes effect soon.
  static constexpr absl::Duration kDeadline = absl::Seconds(2);
  static constexpr absl::Duration kRegisterDeadline = absl::Seconds(1);

  explicit CoordinatorCalls(const std::string& address);

  // Waits for a connection if there is none.
  template <typename Request, typename Response>
  absl::Status Call(Method<Request, Response> method, const Request& request,
                    Response& response, absl::Duration deadline = kDeadline) {
    grpc::ClientContext context;
    Prepare(deadline, /*wait_for_connection=*/true, context);
    return ToStatus(((*stub_).*method)(&context, request, &response));
  }

  // As Call(), but fails at once without a connection: for calls that matter
  // only to a chief that is there.
  template <typename Request, typename Response>
  absl::Status CallIfThere(Method<Request, Response> method,
                           const Request& request, Response& response) {
    grpc::ClientContext context;
    Prepare(kDeadline, /*wait_for_connection=*/false, context);
    return ToStatus(((*stub_).*method)(&context, request, &response));
  }

  // Sends a trace. Fails at once without a connection.
  absl::Status ReportTrace(const v1::ReportTraceRequest& request);

  // Returns the reason why a call failed with `status`, for people. May call
  // the chief and try a connection of its own.
  std::string Trouble(const absl::Status& status);

 private:
  static void Prepare(absl::Duration deadline, bool wait_for_connection,
                      grpc::ClientContext& context);
  absl::Status ToStatus(const grpc::Status& status) const;

  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  const std::unique_ptr<v1::TraceService::Stub> traces_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_COORDINATOR_CALLS_H_
