#include "common/rpc/own_server.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/cluster/host_port.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/security/certificates/peer_probe.h"
#include "common/rpc/security/transport/transport_security.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse with its only field, `status`, in wire format.
constexpr absl::string_view kServing = "\x08\x01";

absl::Status NoAnswer() {
  return absl::UnavailableError("this process's own server does not answer");
}

absl::Status CheckHandshake(const std::string& address,
                            absl::Duration timeout) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return NoAnswer();
  // Connecting, writing and reading may take this time each.
  const absl::StatusOr<PeerShown> shown =
      ProbePeer(parsed->host, parsed->port, nullptr, timeout / 3);
  return shown.ok() ? absl::OkStatus() : NoAnswer();
}

}  // namespace

// The request is the empty message, which means the whole server.
absl::Status CheckOwnServer(const std::string& address,
                            absl::Duration timeout) {
  const std::shared_ptr<TransportSecurity> security = OwnSecurity();
  if (security != nullptr && absl::Now() > security->own().not_after) {
    return CheckHandshake(address, timeout);
  }
  // The raw method needs no generated code of the health service.
  const grpc::internal::RpcMethod method(kHealthCheck,
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(timeout));
  context.set_wait_for_ready(true);
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(address);
  const grpc::Status answered =
      grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
          channel.get(), method, &context, request, &response);
  if (!answered.ok()) return NoAnswer();
  grpc::Slice bytes;
  if (response.DumpToSingleSlice(&bytes).ok() &&
      absl::string_view(reinterpret_cast<const char*>(bytes.begin()),
                        bytes.size()) == kServing) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      "this process's own server answers that it does not serve");
}

}  // namespace lockstep
