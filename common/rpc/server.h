#ifndef LOCKSTEP_COMMON_RPC_SERVER_H_
#define LOCKSTEP_COMMON_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/rpc/tcp_listener.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace lockstep {

// GrpcServer is a listening gRPC server with the health service, reflection and
// the given services.
//
// It bounds the resources that its peers can hold: connections, calls of each,
// bytes of headers, and the memory of received and unreleased messages. If that
// memory is used up, it ends calls whose messages are incomplete. Calls with
// compressed messages fail with UNIMPLEMENTED. It does not bound the calls that
// a peer begins and resets: gRPC 1.51 no longer counts them, but holds each
// until a thread has handled its end.
//
// Threads: safe to share.
// Borrows: the services, which must outlive it.
class GrpcServer {
 public:
  struct Options {
    // Limit of one received message; -1: as much as `memory` allows.
    int largest_message = 16 << 20;
    // Limit of all messages in transfer, complete or not. An initial value if
    // SetMemory() raises it later.
    size_t memory = kLeastMemory;
    ConnectionLimits connections = OwnConnectionLimits();
    // Null: each caller that reaches the address may make any call.
    std::shared_ptr<TransportSecurity> security = OwnSecurity();
    // With certificates, a connection is replaced by a new one after this time,
    // more or less a tenth. Calls that are cut off then can be repeated.
    absl::Duration longest_connection = absl::Hours(12);
  };
  static constexpr size_t kLeastMemory = size_t{256} << 20;

  // Connection limits that fit this process's limit of open files.
  static ConnectionLimits OwnConnectionLimits();

  // Listens on ListenAddress(`address`) ("host:port", port 0 takes a free one).
  //
  //   kInvalidArgument  `address` is no host and port
  //   kUnavailable      the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& address, const std::vector<grpc::Service*>& services,
      const Options& options);
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& address, const std::vector<grpc::Service*>& services) {
    return Start(address, services, Options());
  }

  ~GrpcServer();

  int port() const { return port_; }

  // Sets the limit of received memory, Options::memory.
  void SetMemory(size_t bytes) { quota_.Resize(bytes); }

  // Sets the health of the whole server; initially it serves.
  void SetServing(bool serving);

  // Refuses new calls, and cancels calls that are not done after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(std::unique_ptr<TcpListener> listener, const Options& options);

  grpc::ResourceQuota quota_;
  const std::unique_ptr<TcpListener> listener_;
  // Receives the listener's connections.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SERVER_H_
