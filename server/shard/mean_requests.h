#ifndef LOCKSTEP_SERVER_SHARD_MEAN_REQUESTS_H_
#define LOCKSTEP_SERVER_SHARD_MEAN_REQUESTS_H_

#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "server/shard/shard.h"
#include "server/step/engine.h"
#include "server/step/strict/mirror_parts.h"

namespace lockstep::server {

// MeanRequests decides for which means a mirror calls the servers that compute
// them: once for each part and attempt, and again for those of calls that have
// failed.
//
// Threads: not thread-safe.
class MeanRequests {
 public:
  // Returns the parts among `wanted`, of the active `shard`, for which there is
  // no call. Another attempt, or a shard that was created anew, forgets all
  // calls.
  std::vector<int> Look(const std::shared_ptr<Shard>& shard,
                        const Engine::MeansWanted& wanted);
  // The attempt and the shard of the last Look().
  const StepAttempt& of() const { return of_; }
  const std::weak_ptr<Shard>& shard() const { return shard_; }

  // Records that a call for these parts was started.
  void Called(int first_part, int num_parts);

  // True if a call whose means could not be taken, with `status`, must be
  // repeated. kAborted: the other server is at a later attempt, which the chief
  // will announce here too.
  static bool MustRepeat(const absl::Status& status);
  // Records that a call of the attempt `of` has failed, so that Look() returns
  // its parts again. Returns false, without any effect, if that attempt is
  // over.
  bool Failed(const StepAttempt& of, int first_part, int num_parts);

 private:
  std::weak_ptr<Shard> shard_;
  StepAttempt of_ = {-1, 0};
  std::set<int> called_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_SHARD_MEAN_REQUESTS_H_
