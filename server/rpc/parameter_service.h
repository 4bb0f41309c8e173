#ifndef LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_
#define LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "server/calls/lent_calls.h"
#include "server/calls/peer_budget.h"
#include "server/calls/pending_calls.h"
#include "server/calls/respond.h"
#include "server/rpc/push_tally.h"
#include "server/shard/shard_host.h"

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
              v1::ParameterService::WithRawCallbackMethod_OpenSharedMemory<
                  v1::ParameterService::Service>>> {
 public:
  using Ready = std::function<void(Shard&, ShardAnswers)>;
  using Moved = std::function<void(size_t bytes)>;

  // What a small request can make the server allocate; callers ask for parts of
  // a batch that are far smaller.
  static constexpr size_t kLargestAnswer = size_t{256} << 20;
  // Of rows, which are copied, that a connection may leave unread. One answer
  // may be larger.
  static constexpr size_t kUnreadRows = size_t{64} << 20;

  ParameterService(ShardHost& host, const Clock& clock)
      : host_(host), clock_(clock) {}

  // Where to send what pushes make ready, pushes included. Call it before
  // serving.
  void set_ready(Ready ready) { ready_ = std::move(ready); }

  // Whom to tell how many bytes a push or a pull moves, on the wire or through
  // shared memory. Likewise.
  void set_moved(Moved moved) { moved_ = std::move(moved); }

  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* OpenSharedMemory(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;

  // A caller of its own, not of a stream whose answers are copied and bounded
  // elsewhere; empty there.
  struct Caller {
    BreakOff break_off = nullptr;
    const grpc::CallbackServerContext* context = nullptr;
  };

  // The same, however the calls travel. `break_off` is empty where answers are
  // copied before they travel.
  void ServePush(const grpc::ByteBuffer& request, Respond respond,
                 BreakOff break_off = nullptr);
  void ServePull(const grpc::ByteBuffer& request, const Respond& respond,
                 const Caller& caller);
  void ServeOpen(const grpc::ByteBuffer& request, const Respond& respond);

  // Answers pushes that are decided.
  void Finish(std::vector<PushAnswer> answers);

  // Breaks off calls whose answers have not been read for the job's lease, and
  // lend memory that an update waits for. Call it now and then.
  void TakeBack(absl::Time now);

  const PushTally& tally() const { return tally_; }

  // Ends the pushes that wait, because this process ends.
  void CancelAll(const absl::Status& why);

 private:
  absl::Status HandlePush(const v1::PushHeader& header,
                          const TensorPayload& payload, uint64_t ticket);
  absl::Status HandlePull(const grpc::ByteBuffer& request, const Caller& caller,
                          grpc::ByteBuffer& response);
  // For the answer to hold on to; null where `break_off` is empty.
  std::shared_ptr<const void> Lend(int first_part, int num_parts,
                                   const BreakOff& break_off);
  absl::Status HandlePullRows(const v1::PullRequest& request,
                              const grpc::CallbackServerContext* context,
                              Shard& shard, grpc::ByteBuffer& response);
  absl::StatusOr<v1::OpenSharedMemoryResponse> HandleOpen(
      const v1::OpenSharedMemoryRequest& request);

  ShardHost& host_;
  const Clock& clock_;
  Ready ready_;
  Moved moved_ = [](size_t) {};
  struct PendingPush {
    Respond respond;
    bool shared = false;  // the answer says where the tensors are
    int first_part = 0;
    int num_parts = 0;
    BreakOff break_off = nullptr;
  };
  PendingCalls<PendingPush> pushes_;
  PushTally tally_;
  const std::shared_ptr<LentCalls> lent_ = LentCalls::Create();
  PeerBudget answers_{kUnreadRows};
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_PARAMETER_SERVICE_H_
