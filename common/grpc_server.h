#ifndef LOCKSTEP_COMMON_GRPC_SERVER_H_
#define LOCKSTEP_COMMON_GRPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"

namespace lockstep {

// GrpcServer is a listening gRPC server with the health service, besides the
// services it is given and, where there are some, reflection.
//
// Threads: safe to share.
// Borrows: the services, which must outlive it.
class GrpcServer {
 public:
  // Listens on ListenAddress(`address`) ("host:port", port 0 takes a free one).
  //
  //   kUnavailable  the port is taken, or the host is not this machine's
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& address, const std::vector<grpc::Service*>& services);

  ~GrpcServer();

  int port() const { return port_; }

  // Takes no new calls and cancels those that are not done after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  GrpcServer(std::unique_ptr<grpc::Server> server, int port);

  const std::unique_ptr<grpc::Server> server_;
  const int port_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRPC_SERVER_H_
