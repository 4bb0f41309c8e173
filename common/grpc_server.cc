#include "common/grpc_server.h"

#include <chrono>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/listen_address.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace lockstep {
namespace {

// A client that has stopped or is cut off holds what it is being sent: values
// in memory that the update after next has to write to. Whoever does not answer
// a ping, or take what it is sent, loses its connection within the sum of the
// two, about a lease; one that lives makes a new one.
constexpr absl::Duration kPingEvery = absl::Seconds(1);
constexpr absl::Duration kPingTimeout = absl::Seconds(2);

void SetKeepalive(grpc::ServerBuilder& builder) {
  const auto set = [&](const char* argument, absl::Duration value) {
    builder.AddChannelArgument(
        argument, static_cast<int>(absl::ToInt64Milliseconds(value)));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeout);
  // However long nothing else is sent.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const std::string& address, const std::vector<grpc::Service*>& services) {
  grpc::EnableDefaultHealthCheckService(true);
  static std::once_flag once;
  if (!services.empty()) {
    std::call_once(once,
                   grpc::reflection::InitProtoReflectionServerBuilderPlugin);
  }
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(ListenAddress(address),
                           grpc::InsecureServerCredentials(), &port);
  // A second process on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  SetKeepalive(builder);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     ": the port is taken or the host is not this machine; "
                     "free it or change the address in TF_CONFIG"));
  }
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(server), port));
}

GrpcServer::GrpcServer(std::unique_ptr<grpc::Server> server, int port)
    : server_(std::move(server)), port_(port) {}

GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

void GrpcServer::Shutdown(absl::Duration grace) {
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
}

}  // namespace lockstep
