#include "common/rpc/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/base/call_limits.h"
#include "common/base/status_macros.h"
#include "common/process/listen_address.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_setup.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace lockstep {
namespace {

// A stopped or unreachable client keeps the data it is being sent in memory,
// and the update after the next one must write there. A client that neither
// answers a ping nor reads its data loses its connection within the sum of
// these two, about a lease; a live client reconnects.
constexpr absl::Duration kPingEvery = absl::Seconds(1);
constexpr absl::Duration kPingTimeout = absl::Seconds(2);

// Time within which a new connection must complete the HTTP/2 preface.
constexpr absl::Duration kHandshake = absl::Seconds(10);
constexpr absl::Duration kLongestGrace = absl::Minutes(1);
constexpr int kHeaderBytes = 8 << 10;

void SetLimits(grpc::ServerBuilder& builder, int largest_message) {
  const auto set = [&](const char* argument, absl::Duration value) {
    builder.AddChannelArgument(
        argument, static_cast<int>(absl::ToInt64Milliseconds(value)));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEvery);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeout);
  // Pings continue even if no other data is sent.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshake);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kCallsOfAConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kHeaderBytes);
  builder.SetMaxReceiveMessageSize(largest_message);
  // gRPC would expand a message before it checks the size, to a thousand times
  // what it has received, and beyond the quota of memory.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // Answers are bounded by the parts that a caller requests.
  builder.SetMaxSendMessageSize(-1);
}

// A connection outlives its certificate; this bounds for how long. Calls that
// are cut off are repeated on a new connection.
void LimitAge(grpc::ServerBuilder& builder, absl::Duration longest) {
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONNECTION_AGE_MS,
      static_cast<int>(absl::ToInt64Milliseconds(longest)));
  builder.AddChannelArgument(
      GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
      static_cast<int>(absl::ToInt64Milliseconds(kLongestGrace)));
}

// The value that gRPC uses for connections that it accepts itself.
void SetTimeout(int socket) {
  const unsigned int millis =
      static_cast<unsigned int>(absl::ToInt64Milliseconds(kPingTimeout));
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof(millis));
}

}  // namespace

ConnectionLimits GrpcServer::OwnConnectionLimits() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  return ConnectionLimits::For(files.rlim_cur);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const std::string& address, const std::vector<grpc::Service*>& services,
    const Options& options) {
  // gRPC's own listener has no limit of connections and gives up when accept4()
  // fails; see TcpListener.
  auto listener =
      TcpListener::Listen(ListenAddress(address), options.connections);
  if (!listener.ok()) {
    return absl::Status(
        listener.status().code(),
        absl::StrCat(listener.status().message(), " in TF_CONFIG"));
  }
  std::unique_ptr<GrpcServer> started(
      new GrpcServer(*std::move(listener), options));
  SetUpGrpc();
  grpc::EnableDefaultHealthCheckService(true);
  // Both settings are global to the process and concern servers built later.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  started->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      options.security == nullptr ? grpc::InsecureServerCredentials()
                                  : options.security->ForServer());
  builder.SetResourceQuota(started->quota_);
  SetLimits(builder, options.largest_message);
  if (options.security != nullptr) {
    LimitAge(builder, options.longest_connection);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  started->server_ = builder.BuildAndStart();
  if (started->server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "gRPC serves nothing on ", address, "; its own words are above"));
  }
  auto& acceptor = *started->acceptor_;
  // Only now: a connection accepted earlier would find no server.
  started->listener_->Start([&acceptor](int from, int socket) {
    SetTimeout(socket);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        connection;
    connection.listener_fd = from;
    connection.fd = socket;
    acceptor.HandleNewConnection(&connection);
  });
  return started;
}

GrpcServer::GrpcServer(std::unique_ptr<TcpListener> listener,
                       const Options& options)
    : quota_("lockstep"),
      listener_(std::move(listener)),
      port_(listener_->port()) {
  quota_.Resize(options.memory);
}

GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

void GrpcServer::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

void GrpcServer::Shutdown(absl::Duration grace) {
  listener_->Stop();  // gRPC would leave later connections open
  if (server_ != nullptr) server_->Shutdown(DeadlineIn(grace));
}

}  // namespace lockstep
