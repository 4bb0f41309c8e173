#ifndef LOCKSTEP_TESTS_INTEGRATION_CALL_H_
#define LOCKSTEP_TESTS_INTEGRATION_CALL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"

namespace lockstep::testing {

// Longer than any call takes, so that a hang fails the test.
inline constexpr absl::Duration kCallTimeout = absl::Minutes(2);

// Calls an RPC of an ordinary generated stub:
//
//   Call(*stub, &v1::SyncService::Stub::Announce, request)
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(Stub& stub,
                              grpc::Status (Stub::*rpc)(grpc::ClientContext*,
                                                        const Request&,
                                                        Response*),
                              const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  Response response;
  const grpc::Status status = (stub.*rpc)(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

// Sends raw bytes to "/package.Service/Method", compressed if `algorithm` says
// so, and returns the status of the answer.
absl::Status CallWithBytes(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
    const std::string& bytes, absl::Duration timeout = kCallTimeout,
    grpc_compression_algorithm algorithm = GRPC_COMPRESS_NONE);

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_CALL_H_
