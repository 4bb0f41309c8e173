#ifndef LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "common/base/mutex.h"

namespace lockstep {

// ReadLoans counts who reads a buffer in place, so that nobody writes to it
// meanwhile. Buffers are numbered; what they are is the caller's business.
//
//   free -> Lend() ... last holder lets go -> free
//              `-> Claim() says no -> last holder lets go -> on_returned
//
// A buffer must not be lent between a Claim() that said yes and the end of the
// writing that it was for.
//
// Threads: safe to share. `on_returned` runs in the thread that let go last,
//          with no lock held; it must not write to the buffer right there if
//          that thread is gRPC's.
class ReadLoans : public std::enable_shared_from_this<ReadLoans> {
 public:
  using OnReturned = std::function<void(int buffer)>;

  static std::shared_ptr<ReadLoans> Create(int num_buffers,
                                           OnReturned on_returned);

  // A loan lasts as long as a copy of what is returned, and keeps the book
  // alive and with it `memory`, which the buffers are in.
  std::shared_ptr<const void> Lend(int buffer,
                                   std::shared_ptr<const void> memory);

  // Returns whether nobody reads the buffer. If somebody does, `on_returned`
  // is told once when that is over.
  bool Claim(int buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nobody is told any more.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReadLoans(int num_buffers, OnReturned on_returned);
  void Return(int buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::atomic<int>> loans_;

  Mutex mutex_;
  OnReturned on_returned_ ABSL_GUARDED_BY(mutex_);
  std::set<int> claimed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_
