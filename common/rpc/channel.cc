#include "common/rpc/channel.h"

#include "common/rpc/grpc_setup.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace lockstep {

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
  // A proxy in the environment is for the Internet, not for the job's peers.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address,
                                   security == nullptr
                                       ? grpc::InsecureChannelCredentials()
                                       : security->ForChannel(address),
                                   arguments);
}

}  // namespace lockstep
