#ifndef LOCKSTEP_COMMON_RPC_STATUS_H_
#define LOCKSTEP_COMMON_RPC_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace lockstep {

// Conversions between the two kinds of status, which have the same codes. Both
// keep code, message and the detail of common/wire/status_detail.h.
// ToGrpcStatus() cuts messages beyond 2000 bytes, which may quote a peer,
// because gRPC drops a whole status that does not fit its headers.
// FromGrpcStatus() turns a reset by a server without memory into kUnavailable,
// because the call may be retried.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// As FromGrpcStatus(), for the outcome of a call. A server that shuts down
// cancels its calls, which may then be repeated: kUnavailable in place of
// kCancelled, unless this process has cancelled the call (`cancelled_here`).
absl::Status FromServerStatus(const grpc::Status& status,
                              bool cancelled_here = false);

// Returns `status` of a call to `peer`, such as "127.0.0.1:2222". gRPC's
// kUnimplemented, with which another program or another kind of task answers,
// gets a message that names the peer and the fix; gRPC's own may be empty.
absl::Status ExplainUnserved(const absl::Status& status,
                             absl::string_view peer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_STATUS_H_
