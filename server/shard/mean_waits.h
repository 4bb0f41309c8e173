#ifndef LOCKSTEP_SERVER_SHARD_MEAN_WAITS_H_
#define LOCKSTEP_SERVER_SHARD_MEAN_WAITS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/shard/shard.h"
#include "server/step/gradient.h"
#include "server/step/strict/mirror_parts.h"

namespace lockstep::server {

// MeanWaits holds the calls of other mirrors for means that this server
// computes, and decides when each is answered. The caller must send the
// answers that it takes.
//
// Threads: not thread-safe.
class MeanWaits {
 public:
  // Less than the deadline of such a call, 10 s.
  static constexpr absl::Duration kLongestWait = absl::Seconds(3);

  // A call for consecutive parts.
  struct Wait {
    uint64_t ticket = 0;
    // The shard for which the call was admitted. Another shard must not answer
    // it.
    std::shared_ptr<Shard> shard = {};
    StepAttempt of = {};
    int first_part = 0;
    int num_parts = 0;
    absl::Time since = {};
  };
  struct Answer {
    uint64_t ticket = 0;
    absl::StatusOr<std::vector<PartGradient>> means;
    int first_part = 0;
    // Must be released with no lock held: it may be the last reference, and
    // unmapping takes long.
    std::shared_ptr<Shard> shard = {};
  };

  // Adds a wait, behind those that are there.
  void Add(Wait wait);

  // The Take...() calls remove waits and return their answers, oldest first.
  //
  // Answers the calls whose means are computed or whose attempt is over.
  // Answers calls for another shard than `current` (null: there is none now)
  // with kUnavailable, because that shard was discarded.
  std::vector<Answer> TakeReady(const Shard* current);
  // Answers the calls that have waited for kLongestWait, with
  // kDeadlineExceeded.
  std::vector<Answer> TakeOld(absl::Time now);
  // Answers all calls with `why`.
  std::vector<Answer> TakeAll(const absl::Status& why);

 private:
  std::list<Wait> waits_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_MEAN_WAITS_H_
