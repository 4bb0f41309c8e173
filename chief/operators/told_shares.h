#ifndef LOCKSTEP_CHIEF_OPERATORS_TOLD_SHARES_H_
#define LOCKSTEP_CHIEF_OPERATORS_TOLD_SHARES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/wire/sender.h"

namespace lockstep::chief {

// ToldShares knows among which workers of an elastic job each worker was told
// its share of the data when it registered. The set in effect may change right
// after that: a worker that keeps a share of another set would train examples
// of others again, or leave some out.
//
// Threads: safe to share.
class ToldShares {
 public:
  // A worker has registered, and was told a share among `workers`.
  void Told(const Sender& worker, const std::vector<int>& workers)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks the share of a worker. One that registered with an earlier chief has
  // the right one.
  //
  //   kAborted  it was told a share among other workers than those in effect;
  //             it must register again
  absl::Status Check(const Sender& worker,
                     const std::vector<int>& workers_in_effect)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Share {
    uint64_t incarnation = 0;
    std::vector<int> workers;
  };
  Mutex mutex_;
  std::map<int, Share> shares_ ABSL_GUARDED_BY(mutex_);  // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_OPERATORS_TOLD_SHARES_H_
