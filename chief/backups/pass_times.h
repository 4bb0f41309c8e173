#ifndef LOCKSTEP_CHIEF_BACKUPS_PASS_TIMES_H_
#define LOCKSTEP_CHIEF_BACKUPS_PASS_TIMES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "chief/backups/pass_distribution.h"
#include "common/plan/progress.h"

namespace lockstep::chief {

// PassTimes learns the times of a worker's passes. Older passes count less:
// half as much after each `half_life` passes. A pass that was dropped only
// shows that it would have taken longer. The distribution is estimated from
// both by the method of Kaplan and Meier (1958): of the passes that have lasted
// up to a bin, the fraction that ends in it.
//
// The slow end of the distribution follows from passes that were seen to their
// end, however long ago that was; dropped passes do not change it. Beyond the
// longest of these passes the estimate is optimistic: passes that were dropped
// later count as if they had ended when the last of them was dropped.
//
// The class counts in bins of a quarter of those of a PassDistribution, because
// a step often drops a pass just after others of the same worker have ended.
//
// Memory:  at most one entry for each of its bins.
// Threads: not thread-safe.
class PassTimes {
 public:
  explicit PassTimes(double half_life);

  // Records a pass that was seen to its end, or dropped.
  void Add(const PassTime& pass);

  // The passes seen to their end that count: all, or only bins with one that is
  // not older than three half-lives.
  enum class Memory { kAll, kFresh };

  // The distribution of the passes so far, and of a current one that has lasted
  // `at_hand`. The sum is 1, unless there was no pass.
  PassDistribution Distribution(
      Memory memory = Memory::kAll,
      std::optional<absl::Duration> at_hand = std::nullopt) const;

  int64_t count() const { return count_; }

 private:
  static constexpr int kParts = 4;  // of a bin

  struct Bin {
    double ended = 0;
    double dropped = 0;
  };

  void Rescale();

  const double growth_;  // of the weight, from one pass to the next
  double weight_ = 1;    // of the newest pass
  int64_t count_ = 0;
  std::map<int, Bin> bins_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_BACKUPS_PASS_TIMES_H_
