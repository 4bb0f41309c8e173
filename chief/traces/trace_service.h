#ifndef LOCKSTEP_CHIEF_TRACES_TRACE_SERVICE_H_
#define LOCKSTEP_CHIEF_TRACES_TRACE_SERVICE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/members/membership_table.h"
#include "chief/traces/trace_table.h"
#include "common/base/clock.h"
#include "common/job/job_config.h"
#include "common/rpc/security/caller.h"
#include "common/trace/remedy_limits.h"
#include "common/trace/span_recorder.h"
#include "lockstep/v1/trace.grpc.pb.h"

namespace lockstep::chief {

// TraceService collects traces for operators. The chief's own spans are those
// of `spans`.
//
// Threads: safe to share; gRPC calls it from its own threads.
// Borrows: both tables, the recorder and the clock, which is also the
//          recorder's; all must outlive the gRPC server. The answers to
//          heartbeats must carry the demand of `table`, see trace_demand.h.
class TraceService final : public v1::TraceService::CallbackService {
 public:
  TraceService(std::string job_id, const JobConfig& job,
               MembershipTable& members, TraceTable& table, SpanRecorder& spans,
               const Clock& clock);

  grpc::ServerUnaryReactor* BeginTrace(
      grpc::CallbackServerContext* context,
      const v1::BeginTraceRequest* request,
      v1::BeginTraceResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrace(
      grpc::CallbackServerContext* context,
      const v1::ReportTraceRequest* request,
      v1::ReportTraceResponse* response) override;
  grpc::ServerUnaryReactor* GetTrace(grpc::CallbackServerContext* context,
                                     const v1::GetTraceRequest* request,
                                     v1::GetTraceResponse* response) override;

 private:
  absl::Status HandleReportTrace(const Caller& caller,
                                 const v1::ReportTraceRequest& request);
  absl::Status HandleGetTrace(const v1::GetTraceRequest& request,
                              v1::GetTraceResponse& response);
  // Reports the chief's own spans once the moment of the trace has passed.
  void ReportOwn(absl::Time now);

  const std::string job_id_;
  const absl::Duration heartbeat_interval_;
  const RemedyLimits limits_;
  MembershipTable& members_;
  TraceTable& table_;
  SpanRecorder& spans_;
  const Clock& clock_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TRACES_TRACE_SERVICE_H_
