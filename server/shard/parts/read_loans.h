#ifndef LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_
#define LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "common/base/mutex.h"

namespace lockstep::server {

// ReadLoans counts the readers of each buffer, so that no buffer is written
// while it is read. The caller assigns the numbers of buffers.
//
//   free -> Lend() ... last loan ends -> free
//              `-> Claim() is false -> last loan ends -> on_returned
//
// A buffer must not be lent between a Claim() that returned true and the end of
// the write that it was for.
//
// Threads: safe to share. `on_returned` runs in the thread that ended the last
//          loan, with no lock held. That thread may be gRPC's, so `on_returned`
//          must not write to the buffer itself.
class ReadLoans : public std::enable_shared_from_this<ReadLoans> {
 public:
  using OnReturned = std::function<void(int buffer)>;

  // Makes the object for the buffers 0 to num_buffers - 1.
  static std::shared_ptr<ReadLoans> Create(int num_buffers,
                                           OnReturned on_returned);

  // Lends a buffer until the last copy of the result is gone. A loan keeps this
  // object alive, and `memory`, which holds the buffers.
  std::shared_ptr<const void> Lend(int buffer,
                                   std::shared_ptr<const void> memory);

  // True if the buffer has no readers. If false, `on_returned` is called once,
  // when the last loan ends.
  bool Claim(int buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops all further calls of `on_returned`.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReadLoans(int num_buffers, OnReturned on_returned);
  void Return(int buffer) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<std::atomic<int>> loans_;

  Mutex mutex_;
  OnReturned on_returned_ ABSL_GUARDED_BY(mutex_);
  std::set<int> claimed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_PARTS_READ_LOANS_H_
