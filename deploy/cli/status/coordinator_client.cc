#include "deploy/cli/status/coordinator_client.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/rpc/channel.h"
#include "common/rpc/connection_advice.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/status/status_codec.h"
#include "deploy/cli/text/text_format.h"
#include "grpcpp/client_context.h"
#include "lockstep/v1/coordinator.grpc.pb.h"

namespace lockstep::cli {
namespace {

void Prepare(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(DeadlineIn(timeout));
  // Otherwise a call fails at once while the chief is being started.
  context.set_wait_for_ready(true);
}

}  // namespace

absl::Status ExplainCall(const grpc::Status& status, const std::string& address,
                         absl::Duration timeout) {
  const absl::Status plain = FromGrpcStatus(status);
  if (plain.code() == absl::StatusCode::kDeadlineExceeded) {
    const std::shared_ptr<TransportSecurity> security = OwnSecurity();
    // A handshake that failed shows as a deadline only, since calls wait for a
    // connection.
    const std::vector<std::string> troubles =
        security == nullptr ? std::vector<std::string>() : security->Troubles();
    const std::string advice = ConnectionAdvice(
        address, "--tls_dir, or the --log_dir of a `lockstep run`");
    return absl::DeadlineExceededError(absl::StrCat(
        "no chief answers at ", address, " within ",
        absl::FormatDuration(timeout), "; ",
        !troubles.empty() ? absl::StrJoin(troubles, "; ")
        : !advice.empty() ? advice
                          : "check the address and that the job runs"));
  }
  if (absl::IsUnimplemented(plain)) {
    return ExplainUnserved(absl::UnimplementedError(Printable(plain.message())),
                           address);
  }
  // gRPC's own texts, such as "GOAWAY received", do not say that.
  const absl::string_view lost =
      plain.code() == absl::StatusCode::kUnavailable
          ? " has ended, or the connection to it is lost"
          : "";
  return absl::Status(plain.code(),
                      absl::StrCat("the chief at ", address, lost, ": ",
                                   Printable(plain.message())));
}

struct CoordinatorClient::Stub {
  const std::unique_ptr<v1::CoordinatorService::Stub> service;
};

CoordinatorClient::CoordinatorClient(const std::string& address)
    : address_(address),
      stub_(new Stub{v1::CoordinatorService::NewStub(MakeChannel(address))}) {}

CoordinatorClient::~CoordinatorClient() = default;

absl::StatusOr<JobStatus> CoordinatorClient::GetStatus(absl::Duration timeout) {
  grpc::ClientContext context;
  Prepare(context, timeout);
  v1::GetStatusResponse response;
  const grpc::Status status =
      stub_->service->GetStatus(&context, v1::GetStatusRequest(), &response);
  if (!status.ok()) return ExplainCall(status, address_, timeout);
  return DecodeStatus(response);
}

absl::Status CoordinatorClient::Stop(const std::string& reason,
                                     absl::Duration timeout, bool hold) {
  grpc::ClientContext context;
  Prepare(context, timeout);
  v1::StopRequest request;
  request.set_reason(reason);
  request.set_hold(hold);
  v1::StopResponse response;
  const grpc::Status status =
      stub_->service->Stop(&context, request, &response);
  return status.ok() ? absl::OkStatus()
                     : ExplainCall(status, address_, timeout);
}

absl::StatusOr<int64_t> CoordinatorClient::Checkpoint(absl::Duration timeout) {
  grpc::ClientContext context;
  Prepare(context, timeout);
  v1::CheckpointResponse response;
  const grpc::Status status =
      stub_->service->Checkpoint(&context, v1::CheckpointRequest(), &response);
  if (!status.ok()) return ExplainCall(status, address_, timeout);
  return response.global_step();
}

absl::StatusOr<int64_t> CoordinatorClient::ChangeSettings(
    const Change& change, absl::Duration timeout) {
  grpc::ClientContext context;
  Prepare(context, timeout);
  v1::ChangeSettingsRequest request;
  if (change.replicas_to_aggregate.has_value()) {
    request.set_replicas_to_aggregate(*change.replicas_to_aggregate);
  }
  if (change.learning_rate.has_value()) {
    request.set_learning_rate(*change.learning_rate);
  }
  if (change.paused.has_value()) request.set_paused(*change.paused);
  if (change.remove_worker.has_value()) {
    request.set_remove_worker(*change.remove_worker);
  }
  v1::ChangeSettingsResponse response;
  const grpc::Status status =
      stub_->service->ChangeSettings(&context, request, &response);
  if (!status.ok()) return ExplainCall(status, address_, timeout);
  return response.revision();
}

}  // namespace lockstep::cli
