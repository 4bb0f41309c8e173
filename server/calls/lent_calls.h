#ifndef LOCKSTEP_SERVER_CALLS_LENT_CALLS_H_
#define LOCKSTEP_SERVER_CALLS_LENT_CALLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"

namespace lockstep::server {

// LentCalls records the calls whose answers lend the memory of parts and are
// not sent completely. A caller that does not read its answer keeps that memory
// in use; when an update has waited for the memory for long enough, or the
// memory is to be released, the call is broken off.
//
//   Add() -> ... sent, or over otherwise -> forgotten
//        `-> TakeBack() -> broken off -> forgotten
//
// Breaking a call off does not free its memory. The network stack frees it when
// it has released the last slice; only then does ReadLoans report it.
//
// Threads: safe to share.
class LentCalls : public std::enable_shared_from_this<LentCalls> {
 public:
  // Ends the call unless it is over. Runs with no lock held.
  using BreakOff = std::function<void()>;

  static std::shared_ptr<LentCalls> Create() {
    return std::shared_ptr<LentCalls>(new LentCalls);
  }

  // Records a call whose answer lends parts from `first_part` on. The record
  // ends with the last copy of the result.
  std::shared_ptr<const void> Add(int first_part, int num_parts, absl::Time now,
                                  BreakOff break_off)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks off all calls. Returns their number.
  int TakeBackAll() ABSL_LOCKS_EXCLUDED(mutex_);

  // Breaks off the calls that have lent any of `parts` since before `time`.
  // Returns their number.
  int TakeBack(absl::Span<const int> parts, absl::Time time)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Call {
    int64_t first_part = 0;
    int64_t end_part = 0;
    absl::Time since;
    BreakOff break_off;

    bool Lends(absl::Span<const int> parts) const;
  };

  LentCalls() = default;
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_CALLS_LENT_CALLS_H_
