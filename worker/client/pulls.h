#ifndef LOCKSTEP_WORKER_CLIENT_PULLS_H_
#define LOCKSTEP_WORKER_CLIENT_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/chunks/chunk_transfer.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/mapped_servers.h"
#include "worker/client/server_links.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// Pulls brings those values of variables from the servers that the worker's
// memory does not hold. Private to worker/client.
//
// Threads: one thread calls.
// Borrows: all constructor arguments.
class Pulls {
 public:
  Pulls(ServerLinks& links, HeldChunks& chunks, MappedServers& mapped,
        ParameterMemory& memory, std::optional<int> mirror)
      : links_(links),
        chunks_(chunks),
        mapped_(mapped),
        memory_(memory),
        mirror_(mirror) {}

  // As StepClient::Pull(). HeldChunks::RouteTables() must have been called for
  // the rows of the pass.
  absl::StatusOr<int64_t> Pull(int64_t step);

 private:
  // The server that has the values of another's chunks.
  int Holder(int server) const { return mirror_.value_or(server); }
  void Start(int server, size_t index, int64_t step, bool mapped,
             ChunkTransfer::Report report);
  // Takes the answer to the pull of a chunk.
  //
  //   kAborted   the values were gone before they could be copied
  //   kInternal  the answer is not that of the chunk
  absl::Status Take(const grpc::ByteBuffer& response, int server, size_t index);

  ServerLinks& links_;
  HeldChunks& chunks_;
  MappedServers& mapped_;
  ParameterMemory& memory_;
  const std::optional<int> mirror_;  // as ParameterClient::Options has it
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_PULLS_H_
