#include "common/rpc/own_server.h"

#include <memory>

#include "absl/strings/string_view.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/byte_buffer.h"

namespace lockstep {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse with its only field, `status`, in wire format.
constexpr absl::string_view kServing = "\x08\x01";

}  // namespace

// The request is the empty message, which means the whole server.
absl::Status CheckOwnServer(const std::string& address,
                            absl::Duration timeout) {
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
  if (!answered.ok()) {
    return absl::UnavailableError("this process's own server does not answer");
  }
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
