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
#include "common/wire/tensor_message.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/chunks/chunk_transfer.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/ready_chunks.h"
#include "worker/client/exchange/pass_sends.h"
#include "worker/client/exchange/push_id.h"
#include "worker/client/mapped_servers.h"
#include "worker/client/server_links.h"
#include "worker/client/sync_client.h"
#include "worker/loop/step_client.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// Pushes sends the gradients of one pass at a time to the servers, chunk by
// chunk as they become ready, and copies the values of the answers to the
// worker's memory. PassSends and PushAnswers decide what is sent when, and what
// the answers mean. A push that is not answered although training is over is
// given up. Private to worker/client.
//
// Threads: one thread calls.
// Borrows: all constructor arguments.
class Pushes {
 public:
  Pushes(ServerLinks& links, HeldChunks& chunks, MappedServers& mapped,
         SyncClient& sync, ParameterMemory& memory, GradientType type);
  // Waits for the calls in flight. The links must have been cancelled before,
  // or a server that is away would be waited for.
  ~Pushes();

  // Must be called whenever chunks were cut anew, while no push is under way.
  void OnNewChunks();
  bool under_way() const { return active_ != nullptr; }

  // As the methods of StepClient. BeginPass() first waits for the calls of a
  // push that a dropped pass has left under way.
  void BeginPass(StepClient::PassKind kind);
  void GradientReady(size_t variable);
  void GradientAbsent(size_t variable) { sends_.MarkAbsent(variable); }
  void BeginPush(const PushId& id);
  void SendRest(const PushId& id);
  absl::StatusOr<PushCounts> Push(const PushId& id);
  absl::Status AwaitValues(size_t first, size_t count);

 private:
  // A push that is under way.
  struct Active;

  // Waits for the calls of the current push, if any, and forgets it.
  void Drop();
  // Waits for the answers of the current push, but not long once training is
  // over. False if it gives them up; the calls stay under way.
  bool AwaitAnswers(const PushId& id);
  ServerChannel::Size SizeOf(const ReadyChunks::Id& id) const {
    return ServerChannel::SizeOf(chunks_.GradientBytes(id.server, id.chunk));
  }
  // Rounds gradients that a server reads from shared memory, in place, to the
  // bfloat16 values that it would get over the wire. Has an effect only once
  // per pass: later the server may be reading them for an earlier call.
  void RoundInPlace(int server, size_t index, int64_t pass);
  void Start(int server, size_t index, Active& push,
             ChunkTransfer::Report report);
  // Counts the outcomes in the answer to the push of a chunk, and copies its
  // values to the worker's memory.
  //
  //   kInternal  the answer does not have the size of the chunk
  absl::Status Take(const grpc::ByteBuffer& response, int server, size_t index,
                    Active& push);
  // Copies the values of an answer, and records that the memory holds them.
  absl::Status Store(const v1::PushResult& result, const TensorPayload& payload,
                     int server, size_t index, const PushId& id);

  ServerLinks& links_;
  HeldChunks& chunks_;
  MappedServers& mapped_;
  SyncClient& sync_;
  ParameterMemory& memory_;
  const GradientType type_;
  // By server and chunk: the newest pass for which RoundInPlace() has rounded.
  std::vector<std::vector<int64_t>> rounded_;
  PassSends sends_;
  std::unique_ptr<Active> active_;  // while sends_ has a push
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_PUSHES_H_
