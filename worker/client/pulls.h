#ifndef LOCKSTEP_WORKER_CLIENT_PULLS_H_
#define LOCKSTEP_WORKER_CLIENT_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/client/chunks/chunk_transfer.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/chunks/pull_calls.h"
#include "worker/client/mapped_servers.h"
#include "worker/client/server_links.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// Pulls fetches from the servers the values that the worker's memory does not
// hold. Private to worker/client.
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

  // As StepClient::Pull(), for the missing chunks among those named. In a job
  // with tables, HeldChunks::RouteTables() must have been called after the pass
  // chose its rows.
  absl::StatusOr<int64_t> Pull(
      int64_t step, HeldChunks::Among among = HeldChunks::Among::kAll);

 private:
  // The server from which the chunks of `server` are pulled.
  int Holder(int server) const { return mirror_.value_or(server); }
  // Starts calls_[server][index].
  void Start(int server, size_t index, int64_t step, bool mapped,
             ChunkTransfer::Report report);
  // Copies the values of an answer to the worker's memory.
  //
  //   kAborted   the server overwrote the values before they were copied
  //   kInternal  the answer does not have the size of the chunk
  absl::Status Take(const grpc::ByteBuffer& response, int server,
                    const PullCall& call);
  // Sets calls_, and returns the indices of all of them, by server.
  HeldChunks::Lists MakeCalls(const HeldChunks::Lists& missing);
  // Logs every few seconds while no pull ends before its step.
  void Note(bool overtaken);

  ServerLinks& links_;
  HeldChunks& chunks_;
  MappedServers& mapped_;
  ParameterMemory& memory_;
  const std::optional<int> mirror_;           // as in ParameterClient::Options
  std::vector<std::vector<PullCall>> calls_;  // of one pull, by server
  int64_t overtaken_ = 0;  // pulls in a row that ended after their step
  absl::Time reported_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_PULLS_H_
