#ifndef LOCKSTEP_COMMON_RPC_CHANNEL_H_
#define LOCKSTEP_COMMON_RPC_CHANNEL_H_

#include <memory>
#include <string>

#include "common/rpc/security/transport/transport_security.h"
#include "grpcpp/channel.h"

namespace lockstep {

// Creates a channel that resolves the name late, again after each failure, and
// keeps trying: the peer need not exist yet. A connection also fails if its
// peer's host acknowledges no data for 20 s. Channels with different
// `connection` numbers to one address use different connections. gRPC's limit
// of message sizes is off; parts bound the messages.
//
// With `security`, the channel connects only to a server whose certificate
// names the task at `address`; if it does not connect, the calls' status has
// the reason. The first function takes OwnSecurity(); null: without
// certificates.
//
// Units: a failed attempt is repeated within a second, with an address that is
//        at most 5 s old.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           int connection = 0);
std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, int connection,
    const std::shared_ptr<TransportSecurity>& security);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_CHANNEL_H_
