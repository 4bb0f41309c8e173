#ifndef LOCKSTEP_WORKER_PARAMETER_CLIENT_H_
#define LOCKSTEP_WORKER_PARAMETER_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc_tensor_codec.h"
#include "common/plan.h"
#include "common/wire_codec.h"
#include "lockstep/v1/parameter.pb.h"
#include "lockstep/v1/sync.pb.h"
#include "worker/chunk_plan.h"
#include "worker/chunk_transfer.h"
#include "worker/parameter_memory.h"
#include "worker/server_channel.h"
#include "worker/step_client.h"

namespace lockstep {

// ParameterClient speaks with all servers of a job: it moves variables and
// gradients between them and the worker's memory, chunk by chunk. Gradients
// are sent from where they are.
//
// Threads:  one thread calls; Cancel() may come from any other.
// Borrows:  the memory.
class ParameterClient final : public StepClient {
 public:
  struct Options {
    std::vector<std::string> servers;  // addresses by index of the ps task
    Sender self;
    int64_t max_part_bytes = 1 << 20;
  };

  ParameterClient(const Options& options, const Plan& plan,
                  ParameterMemory& memory);

  absl::StatusOr<int64_t> Pull(int64_t step) override;
  absl::StatusOr<Announcement> Announce(const PassId& pass) override;
  absl::StatusOr<PushCounts> Push(const PassId& pass, int64_t attempt) override;
  absl::StatusOr<Token> TakeToken(const PassId& pass, int64_t attempt) override;

  // Ends the call at hand and all later ones with kCancelled.
  void Cancel();

 private:
  // One round of pulls; the steps that the chunks are of.
  struct PulledSteps {
    std::atomic<int64_t> lowest;
    std::atomic<int64_t> highest;
  };

  absl::Status RunTransfer(const std::string& what, ChunkTransfer::Start start);
  absl::Status PullChunk(const grpc::ByteBuffer& response, const Chunk& chunk,
                         PulledSteps& steps);
  // Calls an RPC of ps task 0 until it answers.
  absl::Status CallSync(const std::string& method,
                        const google::protobuf::MessageLite& request,
                        google::protobuf::MessageLite& response);

  const Options options_;
  ParameterMemory& memory_;
  const std::vector<std::vector<Chunk>> chunks_;
  std::vector<std::unique_ptr<ServerChannel>> channels_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARAMETER_CLIENT_H_
