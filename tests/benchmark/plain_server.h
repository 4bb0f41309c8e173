#ifndef LOCKSTEP_TESTS_BENCHMARK_PLAIN_SERVER_H_
#define LOCKSTEP_TESTS_BENCHMARK_PLAIN_SERVER_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/rpc/server.h"

namespace lockstep::benchmark {

// Serves this task's workers by gRPC until `wait_until_done` returns.
//
//   others  as Cluster::Address() and GrpcServer::Start()
inline absl::Status ServeUntil(absl::FunctionRef<void()> wait_until_done,
                               const Cluster& cluster, grpc::Service& service) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string address,
                            cluster.Address(cluster.self()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<GrpcServer> server,
                            GrpcServer::Start(address, {&service}));
  wait_until_done();
  server->Shutdown(absl::Seconds(10));
  return absl::OkStatus();
}

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_PLAIN_SERVER_H_
