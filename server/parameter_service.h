#ifndef LOCKSTEP_SERVER_PARAMETER_SERVICE_H_
#define LOCKSTEP_SERVER_PARAMETER_SERVICE_H_

#include <functional>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/grpc_tensor_codec.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "server/pending_calls_service.h"
#include "server/push_tally.h"
#include "server/shard_host.h"

namespace lockstep {

// ParameterService puts a shard's tensors on the wire. Push and Pull are
// handled as raw bytes: gradients stay in the slices in which gRPC received
// them, or in the shared memory where their worker computed them.
//
// Threads: safe to share; gRPC calls it from its own threads, and none waits.
// Borrows: the host and the clock, which must outlive the gRPC server.
class ParameterService final
    : public v1::ParameterService::WithRawCallbackMethod_Push<
          v1::ParameterService::WithRawCallbackMethod_Pull<
              v1::ParameterService::WithCallbackMethod_OpenSharedMemory<
                  v1::ParameterService::Service>>> {
 public:
  using Ready = std::function<void(Shard&, ShardAnswers)>;

  ParameterService(ShardHost& host, const Clock& clock)
      : host_(host), clock_(clock) {}

  // Where to send what pushes make ready, pushes included. Call it before
  // serving.
  void set_ready(Ready ready) { ready_ = std::move(ready); }

  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* OpenSharedMemory(
      grpc::CallbackServerContext* context,
      const v1::OpenSharedMemoryRequest* request,
      v1::OpenSharedMemoryResponse* response) override;

  // Answers pushes that are decided.
  void Finish(std::vector<PushAnswer> answers);

  const PushTally& tally() const { return tally_; }

  // Ends the pushes that wait, because this process ends.
  void CancelAll(const absl::Status& why);

 private:
  absl::Status HandlePush(const v1::PushHeader& header,
                          const TensorPayload& payload, uint64_t ticket);
  absl::Status HandlePull(const grpc::ByteBuffer& request,
                          grpc::ByteBuffer& response);
  absl::Status HandleOpen(const v1::OpenSharedMemoryRequest& request,
                          v1::OpenSharedMemoryResponse& response);

  ShardHost& host_;
  const Clock& clock_;
  Ready ready_;
  PendingCalls<grpc::ByteBuffer> pushes_;
  PushTally tally_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PARAMETER_SERVICE_H_
