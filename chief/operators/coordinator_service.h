#ifndef LOCKSTEP_CHIEF_OPERATORS_COORDINATOR_SERVICE_H_
#define LOCKSTEP_CHIEF_OPERATORS_COORDINATOR_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/checkpoint/given_values.h"
#include "chief/members/membership_table.h"
#include "chief/operators/member_answers.h"
#include "chief/operators/settings_table.h"
#include "chief/operators/status_table.h"
#include "chief/traces/trace_table.h"
#include "common/base/clock.h"
#include "common/base/log_budget.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"
#include "common/rpc/security/caller.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/coordinator.grpc.pb.h"

namespace lockstep::chief {

// CoordinatorService puts the chief's tables on the wire: it decodes,
// delegates and encodes.
//
// Threads: safe to share; gRPC calls it from its own threads.
// Borrows: the tables and the clock, which must outlive the gRPC server.
class CoordinatorService final
    : public v1::CoordinatorService::CallbackService {
 public:
  struct Options {
    std::string job_id;
    JobConfig job;  // with replicas filled in
    int num_workers = 0;
    bool has_evaluator = false;  // the cluster has one; shown if it is missing
    // Called when a process or an operator asks the job to stop; with `hold`,
    // to stay stopped.
    std::function<void(const std::string& reason, bool hold)> on_stop;
    // Where workers put initial values; null: none are wanted. Borrowed.
    GivenValues* given_values = nullptr;
    // The traces that operators have begun; null: there are none. Borrowed.
    TraceTable* traces = nullptr;
  };

  CoordinatorService(Options options, MembershipTable& members,
                     StatusTable& status_table, SettingsTable& settings_table,
                     const Clock& clock);

  // The answer to GetStatus for operators.
  v1::GetStatusResponse StatusForOperators() const;

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override;
  grpc::ServerUnaryReactor* DescribeModel(
      grpc::CallbackServerContext* context,
      const v1::DescribeModelRequest* request,
      v1::DescribeModelResponse* response) override;
  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context,
                                    const v1::GetPlanRequest* request,
                                    v1::GetPlanResponse* response) override;
  grpc::ServerUnaryReactor* PutInitialValues(
      grpc::CallbackServerContext* context,
      const v1::PutInitialValuesRequest* request,
      v1::PutInitialValuesResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override;
  grpc::ServerUnaryReactor* ReportEvaluation(
      grpc::CallbackServerContext* context,
      const v1::ReportEvaluationRequest* request,
      v1::ReportEvaluationResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* Stop(grpc::CallbackServerContext* context,
                                 const v1::StopRequest* request,
                                 v1::StopResponse* response) override;
  grpc::ServerUnaryReactor* Checkpoint(
      grpc::CallbackServerContext* context,
      const v1::CheckpointRequest* request,
      v1::CheckpointResponse* response) override;
  grpc::ServerUnaryReactor* ChangeSettings(
      grpc::CallbackServerContext* context,
      const v1::ChangeSettingsRequest* request,
      v1::ChangeSettingsResponse* response) override;

 private:
  // Returns the sender that the message names, if it is the caller.
  static absl::StatusOr<Sender> SenderOf(const Caller& caller,
                                         const v1::Identity& identity);
  // True if the request stops the job; false if its sender is a mirror that
  // must end, without which the job goes on. It may not have registered, so
  // that it does not know the job.
  absl::StatusOr<bool> StopsJob(const Caller& caller,
                                const v1::StopRequest& request);
  // Also checks that it is a member, and renews its lease.
  absl::StatusOr<Sender> MemberOf(const Caller& caller,
                                  const v1::Identity& identity);

  // Returns `status`, and logs it if it is a refusal, which no operator would
  // see otherwise: once if it is repeated, and at most one per second.
  absl::Status Logged(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status HandleChangeSettings(const v1::ChangeSettingsRequest& request,
                                    v1::ChangeSettingsResponse& response);
  absl::Status HandleRegister(const Caller& caller,
                              const v1::RegisterRequest& request,
                              v1::RegisterResponse& response);
  absl::Status HandleDescribeModel(const Caller& caller,
                                   const v1::DescribeModelRequest& request);
  absl::Status HandleGetPlan(const Caller& caller,
                             const v1::GetPlanRequest& request,
                             v1::GetPlanResponse& response);
  absl::Status HandlePutInitialValues(
      const Caller& caller, const v1::PutInitialValuesRequest& request);
  absl::Status HandleHeartbeat(const Caller& caller,
                               const v1::HeartbeatRequest& request,
                               v1::HeartbeatResponse& response);
  // Exchanges the job's history with a server: servers keep it for a chief that
  // is started again.
  void ExchangeHistory(const v1::HeartbeatRequest& request,
                       v1::HeartbeatResponse& response);
  absl::Status HandleLeave(const Caller& caller,
                           const v1::LeaveRequest& request);
  absl::Status HandleReportEvaluation(
      const Caller& caller, const v1::ReportEvaluationRequest& request);
  void FillMembers(absl::Time now, v1::GetStatusResponse& response) const;
  void HandleGetStatus(v1::GetStatusResponse& response) const;

  const Options options_;
  MembershipTable& members_;
  StatusTable& status_table_;
  SettingsTable& settings_table_;
  const Clock& clock_;
  const uint64_t job_fingerprint_;
  MemberAnswers answers_;
  LogBudget farewells_;  // of servers without which the job goes on

  Mutex mutex_;
  std::string refusal_ ABSL_GUARDED_BY(mutex_);  // the last one in the log
  absl::Time refused_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_COORDINATOR_SERVICE_H_
