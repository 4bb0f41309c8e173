#ifndef LOCKSTEP_COMMON_RPC_STATUS_H_
#define LOCKSTEP_COMMON_RPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace lockstep {

// The two kinds of status have the same codes. Both directions keep code,
// message and what common/wire/status_detail.h adds; on the way out a message
// beyond 2000 bytes, which may quote a peer's words, is cut, for gRPC drops a
// whole status that does not fit its headers. On the way in, a call that a full
// server has reset is UNAVAILABLE: try again.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_STATUS_H_
