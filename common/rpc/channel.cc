#include "common/rpc/channel.h"

#include <limits>

#include "absl/time/time.h"
#include "common/rpc/grpc_setup.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {
namespace {

// A peer whose host has lost power sends neither FIN nor RST, and TCP alone
// gives up its connection after a quarter of an hour. A process that is stopped
// keeps its connection as long as its kernel has memory for what it is sent.
constexpr absl::Duration kLongestSilence = absl::Seconds(20);

// After a failure the name is resolved at once, unless it was within this time;
// a name server has the questions of all peers of a task that is away.
constexpr absl::Duration kResolveEvery = absl::Seconds(5);

void Set(const char* argument, absl::Duration value,
         grpc::ChannelArguments& arguments) {
  arguments.SetInt(argument,
                   static_cast<int>(absl::ToInt64Milliseconds(value)));
}

// Sets TCP_USER_TIMEOUT. gRPC does that on a client's sockets only if pings are
// configured; the first one is due after 24 days, for a server may refuse to be
// pinged and a ping would also end connections of a process that is stopped.
void LimitSilence(grpc::ChannelArguments& arguments) {
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   std::numeric_limits<int>::max() - 1);
  Set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kLongestSilence, arguments);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           int connection) {
  return MakeChannel(address, connection, OwnSecurity());
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& address, int connection,
    const std::shared_ptr<TransportSecurity>& security) {
  SetUpGrpc();
  grpc::ChannelArguments arguments;
  // No limit: the server bounds its requests, and a caller its answers, by the
  // size of parts.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // With gRPC's global pool, equal channels of a process would share a
  // connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt("lockstep.connection", connection);
  // Callers repeat calls themselves.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // In gRPC, the minimum is the time that one attempt may take, so it may be
  // above the maximum, the longest pause between attempts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  Set(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kResolveEvery, arguments);
  LimitSilence(arguments);
  // A proxy in the environment is for the Internet, not for the job's peers.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address,
                                   security == nullptr
                                       ? grpc::InsecureChannelCredentials()
                                       : security->ForChannel(address),
                                   arguments);
}

}  // namespace lockstep
