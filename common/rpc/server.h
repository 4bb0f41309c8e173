#ifndef LOCKSTEP_COMMON_RPC_SERVER_H_
#define LOCKSTEP_COMMON_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/tcp_listener.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace lockstep {

// GrpcServer is a listening gRPC server with the health service and reflection,
// besides the services it is given.
//
// What its peers can hold is bounded: connections, calls of each, bytes of
// headers, and the memory of what has been received and not yet let go of.
// Where that memory is used up, calls are ended whose messages are not
// complete.
//
// Threads: safe to share.
// Borrows: the services, which must outlive it.
class GrpcServer {
 public:
  struct Options {
    // Of one message that is received; -1: as much as `memory` allows.
    int largest_message = 16 << 20;
    // Of all that are under way, whole or not. A first guess where SetMemory()
    // says more later.
    size_t memory = kLeastMemory;
    ConnectionLimits connections = OwnConnectionLimits();
  };
  static constexpr size_t kLeastMemory = size_t{256} << 20;

  // What this process's limit of open files leaves room for.
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

  // Bounds what is received, as Options::memory.
  void SetMemory(size_t bytes) { quota_.Resize(bytes); }

  // What the health service says of the whole server; at first that it serves.
  void SetServing(bool serving);

  // Takes no new calls and cancels those that are not done after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(std::unique_ptr<TcpListener> listener, const Options& options);

  grpc::ResourceQuota quota_;
  const std::unique_ptr<TcpListener> listener_;
  // Takes the listener's connections.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SERVER_H_
