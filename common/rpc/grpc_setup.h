#ifndef LOCKSTEP_COMMON_RPC_GRPC_SETUP_H_
#define LOCKSTEP_COMMON_RPC_GRPC_SETUP_H_

namespace lockstep {

// Prepares gRPC in this process: its lines and those of protobuf go to our log,
// and its locks are not checked for deadlocks. The code that makes a channel or
// a server must call it first.
//
// Threads: safe. Only the first call has an effect.
void SetUpGrpc();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_GRPC_SETUP_H_
