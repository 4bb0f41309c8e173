#ifndef LOCKSTEP_WORKER_CLIENT_MAPPED_SERVERS_H_
#define LOCKSTEP_WORKER_CLIENT_MAPPED_SERVERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/chunks/held_chunks.h"
#include "worker/client/mapped_values.h"
#include "worker/client/server_links.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {

// MappedServers shares memory with servers of this host: they map the worker's
// gradients, and the worker maps their values, so that calls carry only offsets
// in that memory. Private to worker/client.
//
// Threads: one thread must call Open(), while no call of a pull or a push is in
//          flight; all other methods may be called from any thread.
// Borrows: all constructor arguments.
class MappedServers {
 public:
  using Places = google::protobuf::RepeatedPtrField<v1::SharedValue>;

  // `mirror` and `mirror_alone` are as in ParameterClient::Options.
  MappedServers(ServerLinks& links, HeldChunks& chunks, ParameterMemory& memory,
                std::optional<int> mirror = std::nullopt,
                bool mirror_alone = false);

  // Asks servers to map memory: the first call asks all, a later one those that
  // had mapped it and have been restarted. Must not be called while a push is
  // under way. Returns true if it cut chunks anew; Pushes::OnNewChunks() must
  // then be called. A server that refuses is used without shared memory. If it
  // had mapped memory before, later calls ask it again, after a pause that
  // doubles up to a minute.
  //
  //   kCancelled  the job ended
  absl::StatusOr<bool> Open();

  // True if the server has mapped memory at some time. Its chunks are cut for
  // shared memory and stay so, also after it was restarted.
  bool HasMapped(int server) const { return cut_[server]; }
  // True if the server maps memory at present.
  bool Maps(int server) const {
    return servers_[server] != nullptr && servers_[server]->open;
  }

  // Copies the values of a chunk from the server's memory to the worker's.
  //
  //   kAborted   the server overwrote the values meanwhile, or has ended
  //   kInternal  `places` are not the places of the chunk's parts
  absl::Status Copy(const Places& places, int server, const Chunk& chunk);

  // Must be applied to the status of each pull and push. A restarted server has
  // no mapping and returns kNotFound; Reconsider() then marks it as not mapped
  // and returns kUnavailable, so that the call is repeated without shared
  // memory. Returns any other status unchanged.
  absl::Status Reconsider(const absl::Status& status, int server);

 private:
  struct Server {
    explicit Server(MappedValues of_server) : values(std::move(of_server)) {}
    const MappedValues values;
    // False once the server was found to have been restarted.
    std::atomic<bool> open = true;
  };

  // When to ask a server again that had mapped memory and then refused.
  struct Retry {
    absl::Time due = absl::InfinitePast();
    absl::Duration pause = absl::Seconds(1);
  };

  absl::StatusOr<MappedValues> OpenServer(int server);
  // The places in shared memory of the parts that the server has, by index.
  std::vector<uint64_t> OffsetsFor(int server) const;
  bool IsToBeMapped(int server) const;
  // True if Open() must ask the server.
  bool IsDue(int server) const;

  ServerLinks& links_;
  HeldChunks& chunks_;
  ParameterMemory& memory_;
  const std::optional<int> mirror_;
  const bool mirror_alone_;
  std::vector<std::unique_ptr<Server>> servers_;  // null: never, or refused
  std::vector<bool> cut_;  // by server: its chunks are cut for shared memory
  std::vector<Retry> retries_;  // by server
  bool opened_ = false;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_MAPPED_SERVERS_H_
