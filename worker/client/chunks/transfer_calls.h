#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_TRANSFER_CALLS_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_TRANSFER_CALLS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::worker {

// TransferCalls decides which calls of a transfer of chunks start, which are
// repeated and when the transfer is over. It makes no calls itself.
//
// Threads: not thread-safe.
class TransferCalls {
 public:
  struct Options {
    int window = 4;  // calls in flight per server
    // By server; may be shorter. True: the server has no window, and all calls
    // start at once.
    std::vector<bool> without_window = {};
    // The pause after the first failure; it doubles with each further one, up
    // to 0.3 s.
    absl::Duration retry_pause = absl::Milliseconds(100);
  };

  // `chunks[s]` are the chunks of server s in the order in which their calls
  // are to start. The lists may be empty, but there must be one per server.
  TransferCalls(const Options& options,
                const std::vector<std::deque<size_t>>& chunks);

  int num_servers() const { return static_cast<int>(servers_.size()); }

  // Adds a chunk behind the others of its server.
  void Add(int server, size_t chunk);

  // Returns the chunk of a server whose call must start at `now`, and counts
  // that call as in flight; nullopt: none.
  std::optional<size_t> Next(int server, absl::Time now);

  // Records the outcome of the call for a chunk. A call that ended with
  // kUnavailable or kDeadlineExceeded is repeated: its chunk comes before all
  // those that were added later. Returns true if Next() must be called for the
  // server at once; otherwise only at retry_at() or after the next Add().
  [[nodiscard]] bool Done(int server, size_t chunk, const absl::Status& status,
                          absl::Time now);

  // True if the server has as many calls in flight as its window allows.
  bool IsFull(int server) const {
    return servers_[server].in_flight >= servers_[server].window;
  }
  // True if the calls for all chunks added for a server have been started.
  bool AllStarted(int server) const { return servers_[server].waiting.empty(); }
  // The time before which no call to the server starts.
  absl::Time retry_at(int server) const { return servers_[server].retry_at; }

  // True if no call is in flight, and every chunk is transferred or a call has
  // failed for good. The latter prevents further calls.
  bool IsOver() const {
    return in_flight_ == 0 && (left_ == 0 || !failure_.ok());
  }
  // The first failure for good.
  const absl::Status& failure() const { return failure_; }

 private:
  struct Server {
    void Add(size_t chunk);
    // Puts a chunk that Next() has returned back to its place.
    void PutBack(size_t chunk);

    std::deque<size_t> waiting;  // in the order in which they were added
    std::vector<size_t> places;  // in that order, by chunk
    size_t next_place = 0;
    int in_flight = 0;
    int window = 0;
    absl::Duration pause;
    absl::Time retry_at = absl::InfinitePast();
  };

  const absl::Duration retry_pause_;
  std::vector<Server> servers_;
  size_t left_ = 0;    // chunks that are not transferred yet
  int in_flight_ = 0;  // of all servers
  absl::Status failure_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_TRANSFER_CALLS_H_
