#ifndef LOCKSTEP_COMMON_RPC_CHANNEL_H_
#define LOCKSTEP_COMMON_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace lockstep {

// Makes a channel that resolves the name late, again after each failure, and
// keeps trying: no peer need be there yet. Channels of different `connection`
// numbers to one address are different connections. Messages have no size
// limit of gRPC's; parts bound them.
//
// Units: after a failed attempt the next one comes within a second.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           int connection = 0);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_CHANNEL_H_
