#ifndef LOCKSTEP_STRATEGY_WORKERS_SHARED_INBOX_H_
#define LOCKSTEP_STRATEGY_WORKERS_SHARED_INBOX_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/log_budget.h"
#include "common/base/mutex.h"
#include "common/memory/shared_memory.h"
#include "lockstep/v1/group.pb.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {

// SharedInbox maps the memory in which other members of this host put their
// payloads (SharedOutbox).
//
// Threads: safe to share.
class SharedInbox {
 public:
  // Copies the payload of the parcel with `header`, which must name a place,
  // into `reader`.
  //
  //   kNotFound         this process cannot map the sender's memory; the sender
  //                     must send the payload
  //   kInvalidArgument  the place is not in the sender's memory
  absl::Status Read(const v1::ParcelHeader& header, ParcelReader& reader)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The ranks whose memory is mapped, ascending.
  std::vector<int> members() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Mapped {
    SharedFile named;  // as the sender described it
    std::shared_ptr<const PeerMemory> memory;
  };

  mutable Mutex mutex_;
  std::map<int, Mapped> mapped_
      ABSL_GUARDED_BY(mutex_);  // by the sender's rank
  LogBudget unshared_;          // of memory that could not be mapped
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_WORKERS_SHARED_INBOX_H_
