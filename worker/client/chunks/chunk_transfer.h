#ifndef LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_TRANSFER_H_
#define LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_TRANSFER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/client/chunks/transfer_calls.h"

namespace lockstep::worker {

// ChunkTransfer makes one call per chunk to a number of servers, a few at a
// time for each, and repeats calls that fail with kUnavailable or
// kDeadlineExceeded, as TransferCalls decides. Its Start function makes the
// calls.
//
// More chunks may follow while calls are under way: Add() ... Add(), Run().
//
// Threads: one thread must call Add(), AddOnly(), RunUntil() and Run().
//          StartAdded() and a Report may be called from any thread, a Report
//          also from within `start`.
class ChunkTransfer {
 public:
  struct Options : TransferCalls::Options {
    // Must return when `done` returns true, which a Report may cause in any
    // thread, or after `at_most`.
    std::function<void(absl::FunctionRef<bool()> done, absl::Duration at_most)>
        wait;
    // The clock of these pauses; borrowed.
    const Clock* clock = &Clock::Real();
    // Called, with the transfer's lock held, for each failure that is repeated.
    std::function<void(int server, const absl::Status& status)> on_retry;
  };
  // Must be called once with the outcome of the call for a chunk. The transfer
  // repeats a call that ended with kUnavailable or kDeadlineExceeded.
  using Report = std::function<void(const absl::Status& status)>;
  // Starts the call for chunk `chunk` of server `server`.
  using Start = std::function<void(int server, size_t chunk, Report report)>;

  // `chunks[s]` are the chunks of server s in the order in which their calls
  // are to start. The lists may be empty, but there must be one per server.
  ChunkTransfer(Options options, const std::vector<std::deque<size_t>>& chunks,
                Start start);

  // Adds a chunk behind the others of its server, and starts calls that the
  // window allows. Must not be called after Run(). A failed call is repeated by
  // Run() or by a later Add(), not in between.
  void Add(int server, size_t chunk) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a chunk without starting its call, for a thread that must not spend
  // time on that. If it returns true, another thread must call StartAdded()
  // once; Run() waits until that has returned.
  [[nodiscard]] bool AddOnly(int server, size_t chunk)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void StartAdded() ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the calls for all chunks added for a server have been started.
  bool AllStarted(int server) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until no call is in flight, and every chunk is transferred or a call
  // has failed for good. Returns the first such failure. Must be called before
  // the object is destroyed if any call was started.
  absl::Status Run() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when Run() would, or when `enough` returns true: at once if a
  // Report has caused it, else within the pause of retries. Chunks may be added
  // afterwards.
  void RunUntil(absl::FunctionRef<bool()> enough) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Starts as many calls as the windows allow.
  void Pump(int server) ABSL_LOCKS_EXCLUDED(mutex_);
  void PumpAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Done(int server, size_t chunk, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Finished() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const Start start_;

  mutable Mutex mutex_;
  TransferCalls calls_ ABSL_GUARDED_BY(mutex_);
  // Calls in flight, and threads that still use the transfer.
  int users_ ABSL_GUARDED_BY(mutex_) = 0;
  bool start_asked_ ABSL_GUARDED_BY(mutex_) = false;  // StartAdded() is to come
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CLIENT_CHUNKS_CHUNK_TRANSFER_H_
