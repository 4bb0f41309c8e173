#ifndef LOCKSTEP_WORKER_CLIENT_PUSHES_H_
#define LOCKSTEP_WORKER_CLIENT_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/numeric/dtype.h"
#include "worker/client/chunks/chunk_transfer.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/mapped_servers.h"
#include "worker/client/server_links.h"
#include "worker/client/sync_client.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// Pushes sends the gradients of one pass at a time to the servers, chunk by
// chunk as they become ready, and takes the values that the answers bring.
// Private to worker/client.
//
// Threads: one thread calls.
// Borrows: all constructor arguments.
class Pushes {
 public:
  Pushes(ServerLinks& links, HeldChunks& chunks, MappedServers& mapped,
         SyncClient& sync, ParameterMemory& memory, GradientType type);
  // Waits for the calls in flight: the links must have been cancelled.
  ~Pushes();

  // Must be called when chunks were cut anew, while no push is under way.
  void OnNewChunks();
  bool under_way() const { return active_ != nullptr; }

  // As StepClient has them. BeginPass() drops a push that is under way: a
  // dropped pass leaves it behind.
  void BeginPass(StepClient::PassKind kind);
  void GradientReady(size_t variable);
  void GradientAbsent(size_t variable);
  void BeginPush(const PassId& pass, int64_t attempt);
  void SendRest(const PassId& pass, int64_t attempt);
  absl::StatusOr<PushCounts> Push(const PassId& pass, int64_t attempt);
  absl::Status AwaitValues(size_t first, size_t count);

 private:
  // A push that is under way.
  struct Active;

  // Waits for the calls of a push that is not needed any more, and forgets it.
  void Drop();
  ServerChannel::Size SizeOf(const ReadyChunks::Id& id) const {
    return ServerChannel::SizeOf(chunks_.GradientBytes(id.server, id.chunk));
  }
  // Rounds the gradients that a server reads in place to the values that it
  // would have got over the wire. At most once in a pass: the server may
  // already read them for another call.
  void RoundInPlace(int server, size_t index, int64_t pass);
  void Start(int server, size_t index, Active& push,
             ChunkTransfer::Report report);
  // Takes the answer to the push of a chunk, and counts it.
  //
  //   kInternal  the answer is not that of the chunk
  absl::Status Take(const grpc::ByteBuffer& response, int server, size_t index,
                    Active& push);

  ServerLinks& links_;
  HeldChunks& chunks_;
  MappedServers& mapped_;
  SyncClient& sync_;
  ParameterMemory& memory_;
  const GradientType type_;
  // By chunk: the pass whose gradients have been rounded in place.
  std::vector<std::vector<int64_t>> rounded_;
  // By variable: the pass has no gradient. Bytes, since threads of the poller
  // read those of variables that are ready while others are written.
  std::vector<uint8_t> absent_;
  ReadyChunks ready_;
  bool token_early_ = true;  // it is asked for with the push, not after it
  std::unique_ptr<Active> active_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_PUSHES_H_
