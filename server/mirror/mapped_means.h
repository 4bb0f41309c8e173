#ifndef LOCKSTEP_SERVER_MIRROR_MAPPED_MEANS_H_
#define LOCKSTEP_SERVER_MIRROR_MAPPED_MEANS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/memory/shared_memory.h"
#include "server/mirror/means_codec.h"
#include "server/step/engine.h"

namespace lockstep::server {

// MappedMeans maps the memory in which other servers of this host keep the
// means that they compute, so that means are read in place.
//
// Threads: safe to share. Means that were handed out stay mapped even if the
//          server is mapped anew.
class MappedMeans {
 public:
  explicit MappedMeans(size_t num_servers) : servers_(num_servers) {}

  // Returns the means of a server's answer that names places.
  //
  //   kInvalidArgument  a place is not in the files, or not at a multiple of 64
  //                     bytes
  //   kUnavailable      this process cannot map the files; MayMap() is false
  //                     until OnServerGone()
  absl::StatusOr<std::vector<PartGradient>> Read(int server,
                                                 const SharedMeans& means)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the server's memory is mapped.
  bool Maps(int server) const ABSL_LOCKS_EXCLUDED(mutex_);

  // False if the server's memory could not be mapped.
  bool MayMap(int server) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Must be called when a call to the server found no process: the memory of
  // the next process may be mappable, and the previous process may have ended
  // before its memory was mapped.
  void OnServerGone(int server) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Server {
    bool refused = false;
    SharedFile named;  // the file of `means`, as the server described it
    std::shared_ptr<const PeerMemory> means;
    std::shared_ptr<const PeerMemory> counters;
  };

  // Maps the files unless they are mapped already.
  absl::StatusOr<Server> Map(int server, const SharedMeans& means)
      ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::vector<Server> servers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_MAPPED_MEANS_H_
