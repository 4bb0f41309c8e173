#ifndef LOCKSTEP_SERVER_RPC_CALL_STREAM_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_CALL_STREAM_SERVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "lockstep/v1/call_stream.grpc.pb.h"
#include "server/calls/peer_budget.h"
#include "server/calls/respond.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/sync_service.h"

namespace lockstep::server {

// CallStreamService serves calls of other services that arrive on long-lived
// streams.
//
// Threads: safe to share; gRPC calls it from its own threads, and no call
//          blocks.
// Borrows: the objects that the handlers and OnEnd refer to, which must outlive
//          the gRPC server.
class CallStreamService final : public v1::CallStreamService::CallbackService {
 public:
  // By full method name, "/lockstep.v1.SyncService/TakeToken".
  using Handlers = std::map<std::string, CallHandler>;

  // Streams that a connection may have open. Each can hold unread answers, so
  // without a limit a connection could fill the memory. A worker has one; a
  // second one may open before the end of the first has arrived.
  static constexpr size_t kStreamsOfAConnection = 4;

  // Called once for each stream, when it has ended, with Caller::stream() of
  // its calls. Must not block.
  using OnEnd = std::function<void(uint64_t stream)>;

  CallStreamService(Handlers handlers, OnEnd on_end)
      : handlers_(std::move(handlers)), on_end_(std::move(on_end)) {}

  grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers>* Calls(
      grpc::CallbackServerContext* context) override;

 private:
  const Handlers handlers_;
  const OnEnd on_end_;
  std::atomic<uint64_t> last_stream_ = 0;
  PeerBudget places_{kStreamsOfAConnection};
};

// Returns the handlers of the workers' most frequent calls. Borrows the
// services.
CallStreamService::Handlers StreamedMethods(ParameterService& parameters,
                                            SyncService& sync);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_RPC_CALL_STREAM_SERVICE_H_
